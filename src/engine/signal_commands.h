/* engine/signal_commands.h - signals of operators to runs, and what becomes of the decisions about them.
 *
 * The caller has checked the payload against its schema (SIGNAL_INVALID_PAYLOAD comes before anything else)
 * and the rate. Here, in one transaction: authorization, the decision record, then the effect; so a record is
 * never without its effect nor an effect without its record. A refusal by policy or by the run's state is
 * recorded too: the command then succeeds, and `refusal` says what the sender hears. */
#ifndef WEIR_ENGINE_SIGNAL_COMMANDS_H
#define WEIR_ENGINE_SIGNAL_COMMANDS_H

#include "engine/append.h"
#include "engine/policy.h"
#include "kernel/kernel.h"
#include "runs/run_event.h"

enum { SIGNAL_ERROR_CODE_MAX = 256 };

struct signal_answer {
    struct uuid decision_id, policy_id;
    enum signal_decision decision;
    bool processed, succeeded; /* by the engine */
    /* Copies: the record they come from is gone when the answer is written. Empty: none. */
    char new_run[RUN_ID_MAX + 1]; /* of RETRY_RUN */
    char error_code[SIGNAL_ERROR_CODE_MAX + 1];
    bool replayed;
    struct err refusal; /* ERR_OK: none */
};

/* The rate limits' remaining room for the signal (api/engine/signal_limits.h). All zero: no limit. */
struct signal_room {
    bool none_if_allowed, none_if_refused; /* one of that decision would be one too many: no record is made */
    struct err full;                       /* then the sender hears this */
    int64_t taken_ms;
};

struct signal_command {
    struct command base;
    struct str run_id;
    struct policy_actor actor;
    struct str source_ip;   /* absent: not known, or not kept */
    struct str actor_shown; /* as the record names the actor: the id, or its pseudonym */
    struct uuid signal_id;
    enum signal_type type;
    const struct json *payload; /* an object */
    struct str audit_reason;    /* absent: none said */
    struct policy_given given;
    struct signal_room room;
    bool run_unseen;  /* no such run when a policy decision point was to be asked: then there is none */
    bool step_unseen; /* the same, of the step that the payload names */
    struct uuid decision_id, policy_id; /* proposed */
    struct str new_run_id;              /* proposed, of RETRY_RUN */
    uint8_t fingerprint[DIGEST_BYTES];  /* of type and canonical payload */
    struct signal_answer answer;
};
extern const struct command_type signal_command_type;

/* Approves or rejects what is held for approval. */
struct settle_command {
    struct command base;
    struct uuid policy_id;
    struct policy_actor actor; /* the caller has checked that it is an Admin */
    struct str actor_shown;
    bool approve;
    struct str reason;
    struct str new_run_id; /* proposed */
    struct signal_answer answer;
};
extern const struct command_type settle_command_type;

/* An engine outside has processed a signal. */
struct processed_command {
    struct command base;
    struct str run_id, tenant;
    struct uuid signal_id;
    bool succeeded;
    struct str error_code; /* absent: none */
    struct str new_run;    /* the run that repeats this one; absent: it did not say */
    /* answer */
    struct uuid policy_id;
    struct err refusal; /* ERR_OK: none */
};
extern const struct command_type processed_command_type;

#endif
