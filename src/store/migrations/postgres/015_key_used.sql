-- When a key was last used, to a minute; when it ends, in databases that learnt of keys before that was known.
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS ends_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS used_ms bigint NOT NULL DEFAULT 0;
