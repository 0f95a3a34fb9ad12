-- What PostgreSQL always refused, SQLite refuses, too: a row of the inbox that is of no client.
ALTER TABLE weir_inbox RENAME TO weir_inbox_19;
CREATE TABLE weir_inbox(failed_ms INTEGER NOT NULL, id INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  execution_ms INTEGER NOT NULL, priority INTEGER NOT NULL, max_runtime_ms INTEGER NOT NULL,
  max_retries INTEGER NOT NULL, client TEXT NOT NULL, type TEXT, work_kind TEXT, queue TEXT, callback TEXT, payload TEXT,
  idempotency_key TEXT, error TEXT, kind TEXT, retry TEXT, PRIMARY KEY(failed_ms, id)) WITHOUT ROWID;
INSERT INTO weir_inbox SELECT failed_ms, id, created_ms, execution_ms, priority, max_runtime_ms, max_retries,
  coalesce(client, ''), type, work_kind, queue, callback, payload, idempotency_key, error, kind, retry FROM weir_inbox_19;
DROP TABLE weir_inbox_19;
