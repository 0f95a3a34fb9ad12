-- Several keys of a client at a time: what each may do, and which there are.
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS scopes bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS queues text COLLATE "C", ADD COLUMN IF NOT EXISTS name text COLLATE "C",
  ADD COLUMN IF NOT EXISTS ends_ms bigint NOT NULL DEFAULT 0;
ALTER TABLE key_heads ADD COLUMN IF NOT EXISTS listed bytea;
