-- Deliveries of events: one row each; those that wait stand in `tasks` as streams, one per receiver and job.
CREATE TABLE deliveries(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, webhook INTEGER NOT NULL,
  job INTEGER NOT NULL, event INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 2), attempts BLOB);
ALTER TABLE webhooks ADD COLUMN former BLOB;
ALTER TABLE webhooks ADD COLUMN rotated_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN failing_since_ms INTEGER NOT NULL DEFAULT 0;
-- `tasks` holds more than jobs now: what a task is about, and whom it bothers. Fixed columns stand before the others,
-- so the table is made anew.
ALTER TABLE tasks RENAME TO tasks_3;
CREATE TABLE tasks(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, client INTEGER NOT NULL, owner INTEGER NOT NULL,
  type INTEGER NOT NULL, kind INTEGER NOT NULL, priority INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  max_runtime_ms INTEGER NOT NULL, max_retries INTEGER NOT NULL, subject INTEGER NOT NULL, target INTEGER NOT NULL,
  queue TEXT NOT NULL,
  state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 3), attempt INTEGER NOT NULL, token INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, last_us INTEGER NOT NULL,
  seq INTEGER NOT NULL, worker TEXT, refs BLOB NOT NULL);
DROP VIEW job_states;
INSERT INTO tasks SELECT id, low, client, owner, type, kind, priority, created_ms, max_runtime_ms, max_retries, 0, 0,
  queue, state, attempt, token, lease_ms, due_ms, started_ms, last_us, seq, worker, refs FROM tasks_3;
DROP TABLE tasks_3;
CREATE VIEW job_states AS
  SELECT j.id, j.client, j.queue, coalesce(e.state, t.state) AS state, coalesce(e.attempt, t.attempt) AS attempt,
         j.created_ms, coalesce(e.last_us, t.last_us) / 1000 AS updated_ms
  FROM jobs j LEFT JOIN tasks t ON t.id = j.id LEFT JOIN ends e ON e.id = j.id;
