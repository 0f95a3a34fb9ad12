-- Layout F: jobs and ends are insert-only, tasks holds what is alive, events are in the log.
-- jobs.id, ends.id and tasks.id are the first 60 bits of the job's UUIDv7: time-ordered, so appended.
CREATE TABLE clients(uuid BLOB PRIMARY KEY, num INTEGER NOT NULL, created_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE client_secrets(client INTEGER PRIMARY KEY, secret BLOB NOT NULL, former BLOB, rotated_ms INTEGER NOT NULL);
CREATE TABLE api_keys(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, client_uuid BLOB NOT NULL,
  hash BLOB NOT NULL,  created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL);
CREATE INDEX api_keys_client ON api_keys(client);
CREATE TABLE key_heads(client INTEGER PRIMARY KEY, active INTEGER NOT NULL);
CREATE TABLE webhooks(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, url TEXT NOT NULL,
  events TEXT NOT NULL, created_ms INTEGER NOT NULL, secret BLOB NOT NULL, enabled INTEGER NOT NULL);
CREATE INDEX webhooks_client ON webhooks(client);
CREATE TABLE webhook_keys(client INTEGER NOT NULL, fingerprint BLOB NOT NULL, webhook INTEGER NOT NULL,
  PRIMARY KEY(client, fingerprint)) WITHOUT ROWID;
CREATE TABLE creates(scope TEXT NOT NULL, name TEXT NOT NULL, fingerprint BLOB NOT NULL, uuid BLOB NOT NULL,
  created_ms INTEGER NOT NULL, PRIMARY KEY(scope, name)) WITHOUT ROWID;
CREATE TABLE jobs(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, type INTEGER NOT NULL,
  kind INTEGER NOT NULL, priority INTEGER NOT NULL, created_ms INTEGER NOT NULL, execution_ms INTEGER NOT NULL,
  seed INTEGER NOT NULL, duration_ms INTEGER NOT NULL, should_fail INTEGER NOT NULL, payload_size INTEGER NOT NULL,
  max_runtime_ms INTEGER NOT NULL, max_retries INTEGER NOT NULL, queue TEXT NOT NULL, callback TEXT, idem_key TEXT,
  idem_fingerprint BLOB, payload TEXT, traceparent TEXT);
CREATE TABLE ends(id INTEGER PRIMARY KEY, client INTEGER NOT NULL, kind INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK(state BETWEEN 4 AND 6), attempt INTEGER NOT NULL, token INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, last_us INTEGER NOT NULL, seq INTEGER NOT NULL,
  result TEXT, error TEXT, refs BLOB NOT NULL);
CREATE TABLE archives(job INTEGER NOT NULL, attempt INTEGER NOT NULL, started_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL, result TEXT, error TEXT, PRIMARY KEY(job, attempt)) WITHOUT ROWID;
CREATE TABLE tasks(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, owner INTEGER NOT NULL,
  type INTEGER NOT NULL, kind INTEGER NOT NULL, priority INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  max_runtime_ms INTEGER NOT NULL, max_retries INTEGER NOT NULL, queue TEXT NOT NULL,
  state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 3), attempt INTEGER NOT NULL, token INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, last_us INTEGER NOT NULL,
  seq INTEGER NOT NULL, worker TEXT, refs BLOB NOT NULL);
CREATE INDEX tasks_client ON tasks(client);
CREATE TABLE client_stats(client INTEGER PRIMARY KEY, counts BLOB NOT NULL);
CREATE TABLE kept(job INTEGER NOT NULL, seq INTEGER NOT NULL, event BLOB NOT NULL, PRIMARY KEY(job, seq)) WITHOUT ROWID;
-- The log: packed events, at most one page a row; a reference is (g << 16 | offset).
CREATE TABLE log(g INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- Numbers that must not start over when the rows they count are purged.
CREATE TABLE marks(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
-- Idempotency keys, append-only; the hash table is in memory.
CREATE TABLE idem(id INTEGER PRIMARY KEY, h INTEGER NOT NULL);
-- Listing entries: bucket 0 holds every job, 1 + state the finished ones; pend holds those not merged yet.
CREATE TABLE list(client INTEGER NOT NULL, bucket INTEGER NOT NULL, id INTEGER NOT NULL,
  PRIMARY KEY(client, bucket, id)) WITHOUT ROWID;
CREATE TABLE pend(g INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- For people with the sqlite3 shell: one line per job, whatever its state.
CREATE VIEW job_states AS
  SELECT j.id, j.client, j.queue, coalesce(e.state, t.state) AS state, coalesce(e.attempt, t.attempt) AS attempt,
         j.created_ms, coalesce(e.last_us, t.last_us) / 1000 AS updated_ms
  FROM jobs j LEFT JOIN tasks t ON t.id = j.id LEFT JOIN ends e ON e.id = j.id;
