-- A job that nobody claims for so long expires: how long, and when that is.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS queue_ttl_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS queue_ttl_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS expire_ms bigint NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS tasks_expire ON tasks(expire_ms) WHERE phase=1 AND expire_ms>0;
