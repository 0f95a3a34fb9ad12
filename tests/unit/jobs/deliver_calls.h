/* unit/jobs/deliver_calls.h - what senders and owners of webhooks do, on the rig: claim, answer, ask. */
#ifndef WEIR_TESTS_DELIVER_CALLS_H
#define WEIR_TESTS_DELIVER_CALLS_H

#include "jobs/client_commands.h"
#include "jobs/deliver.h"
#include "unit/kernel/rig.h"

enum { CLAIMED_MAX = 256 };

/* Claims alone: the sender never begins. */
struct claim_command *claim_unstarted(struct rig *r, const char *kind, uint32_t max);
/* Claims and starts what can be sent, so many at most: live deliveries, or dead letters. */
struct claim_command *claim_from(struct rig *r, const char *kind, uint32_t max);
struct claim_command *claim_some(struct rig *r, uint32_t max);
struct claim_command *claim_letters(struct rig *r);
struct claim_command *claim_all(struct rig *r);
enum err_code answer(struct rig *r, const struct claimed_task *t, int64_t status);
/* The same with a Retry-After. */
enum err_code answer_later(struct rig *r, const struct claimed_task *t, int64_t status,
                           int64_t retry_after_ms);
struct delivery_row row_of(struct rig *r, int64_t id);
int64_t new_webhook(struct rig *r, int64_t client, const char *url, const char *events);
/* The deliveries of a sender that asks for one slot alone. */
struct claim_command *claim_slot(struct rig *r, const char *kind, uint32_t slot);
struct webhook_row webhook_of(struct rig *r, int64_t id);
void ask(struct rig *r, int64_t client, int64_t hook, enum webhook_action action, int64_t delivery);
/* The same; gives what comes of it. */
enum err_code try_ask(struct rig *r, int64_t client, int64_t hook, enum webhook_action action,
                      int64_t delivery);
void send_test(struct rig *r, int64_t client, int64_t hook);

#endif
