-- What applications put in to become jobs (src/jobs/inbox.h). Only PostgreSQL has others that write; here the table
-- holds what a copy brought along.
CREATE TABLE weir_inbox(failed_ms INTEGER NOT NULL, id INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  execution_ms INTEGER NOT NULL, priority INTEGER NOT NULL, max_runtime_ms INTEGER NOT NULL,
  max_retries INTEGER NOT NULL, client TEXT, type TEXT, work_kind TEXT, queue TEXT, callback TEXT, payload TEXT,
  idempotency_key TEXT, error TEXT, PRIMARY KEY(failed_ms, id)) WITHOUT ROWID;
