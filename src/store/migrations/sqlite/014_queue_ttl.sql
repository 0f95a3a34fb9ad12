-- A job that nobody claims for so long expires: how long, and when that is.
ALTER TABLE jobs ADD COLUMN queue_ttl_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN queue_ttl_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN expire_ms INTEGER NOT NULL DEFAULT 0;
