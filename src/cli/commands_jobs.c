/* The commands of jobs, their clients and their queues. */
#include "cli/command_flags.h"

#include "base/banned.h"

const struct command job_commands[] = {
    {"client create", "", "make a client; --with-key makes its first API key too",
     KEYS | FLAG_BIT(WITH_KEY) | FLAG_BIT(IDEMPOTENCY_KEY), 0, 0, command_client_create},
    {"client list", "", "show all clients, the oldest first", OPERATOR | PAGES | FLAG_BIT(STATE), 0, 0,
     command_client_list},
    {"client suspend", "CLIENT_ID", "refuse its keys and hand out none of its work", OPERATOR, 1, 1,
     command_client_suspend},
    {"client resume", "CLIENT_ID", "let a suspended client go on", OPERATOR, 1, 1, command_client_resume},
    {"client purge-jobs", "CLIENT_ID", "cancel all its unfinished jobs", OPERATOR, 1, 1,
     command_client_purge_jobs},
    {"client delete", "CLIENT_ID", "remove its keys, secret and webhooks for good", OPERATOR, 1, 1,
     command_client_delete},
    {"client key create", "CLIENT_ID", "make an API key; shown once",
     KEYS | WISH | FLAG_BIT(ROTATE) | FLAG_BIT(IDEMPOTENCY_KEY), 1, 1, command_client_key_create},
    {"client key list", "CLIENT_ID", "show the keys of a client, without secrets", KEYS, 1, 1,
     command_client_key_list},
    {"client key renew", "CLIENT_ID [KEY_ID]", "replace a key, the one in use unless named, by a new one",
     KEYS | WISH, 1, 2, command_client_key_renew},
    {"client key revoke", "CLIENT_ID KEY_ID", "refuse a key from now on", KEYS, 2, 2,
     command_client_key_revoke},

    {"job submit", "", "hand in a job",
     SERVER | FLAG_BIT(TYPE) | FLAG_BIT(KIND) | FLAG_BIT(WORK_KIND) | FLAG_BIT(AT) | FLAG_BIT(QUEUE) |
         FLAG_BIT(PAYLOAD) | FLAG_BIT(PRIORITY) | FLAG_BIT(CALLBACK) | FLAG_BIT(IDEMPOTENCY_KEY) |
         FLAG_BIT(MAX_RUNTIME_MS) | FLAG_BIT(MAX_RETRIES) | FLAG_BIT(RETRY) | FLAG_BIT(QUEUE_TTL) |
         FLAG_BIT(WAIT) | FLAG_BIT(TIMEOUT),
     0, 0, command_job_submit},
    {"job get", "JOB_ID", "show a job", SERVER, 1, 1, command_job_get},
    {"job list", "", "show jobs, newest first",
     SERVER | FILTERS | FLAG_BIT(LIMIT) | FLAG_BIT(CURSOR) | FLAG_BIT(ALL), 0, 0, command_job_list},
    {"job cancel", "[JOB_ID]", "cancel a job, waiting or running, or all that match filters", SERVER | BULK,
     0, 1, command_job_cancel},
    {"job retry", "[JOB_ID]", "queue a failed job again, or all that match filters", SERVER | BULK, 0, 1,
     command_job_retry},
    {"job report", "JOB_ID", "show what happened to a final job", SERVER, 1, 1, command_job_report},
    {"job watch", "JOB_ID", "follow a job's events until it is final", SERVER | FLAG_BIT(TIMEOUT), 1, 1,
     command_job_watch},
    {"job explain", "JOB_ID", "say what a job waits for", SERVER, 1, 1, command_job_explain},

    {"queue list", "", "show your queues; with --operator-token those of all clients",
     SERVER | PAGES | FLAG_BIT(OPERATOR_TOKEN), 0, 0, command_queue_list},
    {"queue show", "QUEUE", "show a queue and its defaults", SERVER, 1, 1, command_queue_show},
    {"queue pause", "QUEUE", "hand out none of its jobs; submits go on", SERVER, 1, 1, command_queue_pause},
    {"queue resume", "QUEUE", "hand out its jobs again", SERVER, 1, 1, command_queue_resume},
    {"queue purge", "QUEUE", "cancel its QUEUED jobs", SERVER | FLAG_BIT(YES), 1, 1, command_queue_purge},
    {"queue set", "QUEUE", "set what its jobs are given that do not say",
     SERVER | FLAG_BIT(RETRY) | FLAG_BIT(MAX_RETRIES) | FLAG_BIT(QUEUE_TTL) | FLAG_BIT(RETENTION), 1, 1,
     command_queue_set},
    {.name = NULL},
};
