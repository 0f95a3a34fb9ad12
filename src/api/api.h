/* api/api.h - between HTTP and the kernel: one table of routes, one order of checks, three-step handlers
 * (decode, command or read, encode).
 *
 * Order of checks (AJ-12): route, method, auth, rate limit, scope, Accept, Content-Type, size, all from the
 * head and before a body is read; then JSON, fields, and the handler (ownership, state). dispatch.c does all
 * of it but the last; handlers hold no SQL, no state names, no limits.
 * Threads: a call lives on its HTTP loop thread; its command visits the commit thread and comes back. */
#ifndef WEIR_API_API_H
#define WEIR_API_API_H

#include "api/address_limits.h"
#include "api/auth.h"
#include "api/client_ids.h"
#include "api/route_bodies.h"
#include "api/contract_set.h"
#include "api/credential.h"
#include "api/followers.h"
#include "api/metrics.h"
#include "api/ops/topology.h"
#include "api/overload.h"
#include "api/rate_limit.h"
#include "api/reads.h"
#include "api/token_auth.h"
#include "api/traces.h"
#include "base/clock.h"
#include "base/heart.h"
#include "base/json.h"
#include "http/problem.h"
#include "http/router.h"
#include "http/server.h"
#include "jobs/client_commands.h"
#include "kernel/kernel.h"
#include "store/store.h"
#include "tokens/key_ring.h"

struct api;
struct call;

/* The words of x-weir-auth; contracts/README.md says who passes with each. */
enum auth_need {
    AUTH_NONE,
    AUTH_PROBE,
    AUTH_OPTIONAL,
    AUTH_CLIENT,
    AUTH_KEEPER,
    AUTH_OPERATOR,
    AUTH_ADMINISTRATOR,
    AUTH_WORKER,
    AUTH_TOKEN, /* from here on nothing but a token will do; check_caller.c has the roles */
    AUTH_ENGINEER,
    AUTH_ENGINE,
    AUTH_ADMIN,
    AUTH_SIGNAL,
};

/* Media types of answers: ACCEPT_ and their second half. */
enum accept_kinds {
    ACCEPT_JSON = 1,
    ACCEPT_CSV = 2,
    ACCEPT_EVENT_STREAM = 4,
    ACCEPT_PLAIN = 8,
    ACCEPT_YAML = 16,
};

/* The words of x-weir-rate: the limits that a call counts against. */
enum rate_class { RATE_CLASS_NONE, RATE_CLASS_CLIENT };

/* Beside a scope: the call tells of or touches every queue, so a key that is limited to some is refused. */
enum { EVERY_QUEUE = 1 << KEY_SCOPE_COUNT };

/* An operation of contracts/openapi as tools/generate_routes.py writes it. */
struct route_info {
    const char *contract; /* "jobs": the file it stands in */
    const char *action;   /* in logs */
    enum auth_need auth;
    unsigned scope;   /* that an API key needs: one of enum key_scope_bits, perhaps | EVERY_QUEUE; 0: none */
    unsigned accepts; /* accept_kinds this route can give; the lowest bit is its default */
    enum rate_class rate;
    const char *body, *checked_body; /* pointers to their schemas in the contract; NULL: there is none */
    const char *const *query;        /* names of its query parameters; ends with NULL */
    bool is_list;                    /* refuses query parameters of other names */
    void (*handle)(struct call *c);
};

/* Of all contracts, in the order of their files; api/handlers.h has the prototypes of the handlers. */
extern const struct route api_routes[];
extern const size_t api_route_count;

struct api_config {
    const struct settings *settings;
    const struct clock *clock;
    const char *topology_path;
    const struct contract *const *contracts; /* ends with NULL; lives as long as the API */
};

/* One request on its way. In the exchange's arena. */
struct call {
    struct http_exchange *x;
    struct api *api;
    struct route_match match;
    const struct route_info *info;
    size_t route_number; /* in api_routes; api_route_count: there is no such route */
    struct principal who;
    const struct token_claims *claims; /* of a token; NULL: there is none */
    const struct json *body;           /* an object; never NULL for a handler (absent body = empty object) */
    struct credential credential;      /* of a call that lasts */
    unsigned accept;                   /* the one kind chosen */
    struct command *command;
    void (*finish)(struct call *c); /* after the command is done */
    struct str job_id;              /* for the log line */
    struct err err;                 /* the error of the answer, for the log line */
    struct span *span;              /* NULL: not traced */
    bool ingests;                   /* brings work or events: the time to its decision is an SLO */
    void *data;
};

struct api {
    struct api_config config;
    struct kernel *kernel;
    struct http_server *server;
    struct contract_set contracts;
    struct router *router;
    struct route_bodies *bodies;
    struct auth *auth;
    struct token_auth *token_auth;
    struct key_uses *key_uses;
    bool is_dev; /* the environment is dev */
    struct rate_limit *rate_limit;
    struct address_limits *address_limits;
    struct metrics *metrics;
    struct overload *overload;
    struct traces *traces; /* NULL: off */
    struct client_ids *client_ids;
    struct followers *followers;
    struct reads *reads;
    struct topology *topology;
    struct key_ring *keys;      /* that tokens are signed with */
    uint64_t token_key_changes; /* of them, that those who last were told of; api_tick() */
    /* opened: kernel and reads are there. Before that only ops/ is served, the rest is told to come back. */
    _Atomic bool opened, draining, started, fatal, mark_missing;
};

MUST_CHECK enum err_code api_new(const struct api_config *config, struct api **ret_api, struct err *err);
/* The store and the kernel around it, once. HTTP threads may run already. */
void api_open(struct api *a, struct store *store, struct kernel *kernel);
/* Requests that wait for something outside end now. Before the HTTP threads end. NULL is fine. */
void api_stop(struct api *a);
struct api *api_free(struct api *a); /* after the HTTP threads ended */
/* kernel_watch and http_config callbacks are wired to these. */
void api_on_head(struct http_exchange *x);
void api_on_request(struct http_exchange *x);
void api_on_bad_request(struct http_exchange *x, int status, const struct err *why);
void api_on_done(struct http_exchange *x);
void api_on_round_end(void *context); /* context: the api */
/* Other nodes wrote (enum store_hint, or'ed). Any thread. */
void api_hint(struct api *a, unsigned hints);
void api_committed(void *self, const struct unit *u);
/* kernel_config.housekeep and its kin, of all contracts. */
bool api_housekeep(void *self, struct unit *u);
bool api_save(void *self, struct unit *u);
void api_saved(void *self, bool stored);
void api_batch_end(void *self);
void api_inline_batch_end(void *self); /* the same, when an HTTP thread has committed */
/* An API key or a token's key is refused from now on: nothing that was known of them holds. Any thread. */
void api_keys_changed(struct api *a);
/* Now and then, from a thread that waits for no disk but in here, where its heart says so. */
void api_tick(struct api *a, struct heart *heart);
void api_inline_commit_begins(void *self); /* an HTTP thread begins an inline commit */

/* --- for handlers ------------------------------------------------------------------------------ */

/* This HTTP thread's reader inside a snapshot that no handler ends (api/reads.h); NULL with err set when
 * the store cannot be read. A read that fails is told with call_problem, or with reads_end where it is
 * not. */
struct reader *api_read_begin(struct api *a, struct err *err);

/* The same, or NULL: answered. */
struct reader *call_reader(struct call *c);
/* The row of this key, into the call's arena. False: the read failed, which is answered. */
bool call_row(struct call *c, struct reader *r, const struct table *t, void *row, bool *ret_found);

void call_problem(struct call *c, const struct err *err); /* answers */
/* The same with "policyDecisionId" in it, for a signal that was refused and recorded. */
void call_problem_of_policy(struct call *c, const struct err *err, const struct uuid *policy_id);
/* {"error":PROBLEM}, for an item of a batch. */
void call_write_refusal(const struct call *c, const struct err *err, struct json_writer *w);
void call_fail(struct call *c, enum err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A JSON answer: write with the writer, then call_send. */
void call_json(struct call *c, int status, struct json_writer *w);
void call_send(struct call *c);
/* The same for an object: its members are written between the two. */
void call_object(struct call *c, int status, struct json_writer *w);
void call_send_object(struct call *c, struct json_writer *w);
void call_say(struct call *c, const char *what); /* 200 {"WHAT":true} */
/* Posts the command and comes back in `finish` on the loop thread; a failed command is answered already. */
void call_post(struct call *c, struct command *command, const struct command_type *type,
               int64_t extra_wait_ms, void (*finish)(struct call *c));
/* How long a long poll may really wait: it holds a connection, so less under pressure, and not in a drain. */
int64_t call_wait_ms(const struct call *c, int64_t asked_ms);
/* The {job_id} of the path. Malformed: 404 on GET, 400 on POST. False: answered. */
bool call_job_id(struct call *c, int64_t *ret_key, uint64_t *ret_low);
bool call_uuid_param(struct call *c, const char *name, struct uuid *ret);
/* {client_id} and {webhook_id}. False: answered. */
bool call_client_param(struct call *c, struct uuid *ret);
bool call_webhook_param(struct call *c, int64_t *ret_id, uint64_t *ret_low);
/* Of an operator's call, for the record: the token's subject, or the one operator there is. */
struct str call_actor(const struct call *c);
/* May the caller's key touch jobs of this queue? */
static inline bool call_has_queue(const struct call *c, struct str queue)
{
    return key_queues_have(c->who.power.queues, queue);
}
/* One request of a caller without credentials; false: its address has had its share, which was answered. */
bool call_take_from_address(struct call *c, enum address_budget budget);
/* Idempotency-Key header, at most 255 visible characters; false: answered. */
bool call_idempotency_key(struct call *c, struct str *ret_key);
void call_body_fingerprint(const struct json *body, const char *skip_key, uint8_t out[16]);

#endif
