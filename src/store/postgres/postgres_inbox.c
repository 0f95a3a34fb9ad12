/* Prepares the table `weir_inbox` for plain SQL of applications (jobs/inbox.h): defaults, a column of type
 * timestamptz, and a notification of the node that has the duties. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

const char *const postgres_inbox_sql[] = {
    /* Ids rise with time and are never given twice, also where rows were copied in from another database. */
    "CREATE SEQUENCE IF NOT EXISTS weir_inbox_numbers",
    "ALTER TABLE weir_inbox"
    " ALTER id SET DEFAULT (extract(epoch FROM "
    "clock_timestamp())*1000000)::bigint*64+nextval('weir_inbox_numbers')%64,"
    " ALTER created_ms SET DEFAULT (extract(epoch FROM clock_timestamp())*1000)::bigint,"
    " ALTER priority SET DEFAULT -1, ALTER max_runtime_ms SET DEFAULT -1, ALTER max_retries SET DEFAULT -1",
    "ALTER TABLE weir_inbox ADD COLUMN IF NOT EXISTS execution_at timestamptz",
    /* Rows are read a hundred at a time, so a larger one has to come over HTTP. The column `error` is written
     * by Weir and has room of its own; otherwise a row that is nearly too long could never be refused. */
    "ALTER TABLE weir_inbox DROP CONSTRAINT IF EXISTS weir_inbox_sizes",
    "ALTER TABLE weir_inbox ADD CONSTRAINT weir_inbox_sizes CHECK(coalesce(octet_length(payload),0)<=1048576 "
    "AND octet_length(concat(client,type,work_kind,kind,retry,queue,callback,idempotency_key))<=16384 "
    "AND coalesce(octet_length(error),0)<=16384)",
    "CREATE OR REPLACE FUNCTION weir_inbox_fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.execution_at IS NOT NULL THEN "
    "NEW.execution_ms=ceil(extract(epoch FROM NEW.execution_at)*1000)::bigint; END IF; RETURN NEW; END $$",
    "CREATE OR REPLACE TRIGGER weir_inbox_fill BEFORE INSERT OR UPDATE ON weir_inbox FOR EACH ROW "
    "EXECUTE FUNCTION weir_inbox_fill()",
    /* HINT_INBOX, from a node that is none: theirs are odd. Told once a transaction, when it commits. */
    "CREATE OR REPLACE FUNCTION weir_inbox_tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "PERFORM pg_notify('weir','16:2'); RETURN NULL; END $$",
    "CREATE OR REPLACE TRIGGER weir_inbox_tell AFTER INSERT OR UPDATE ON weir_inbox FOR EACH ROW "
    "WHEN (NEW.failed_ms=0) EXECUTE FUNCTION weir_inbox_tell()",
};
const size_t postgres_inbox_sql_count = LENGTH_OF(postgres_inbox_sql);
_Static_assert(HINT_INBOX == 16, "what the trigger tells");
