-- Several keys of a client at a time: what each may do, and which there are.
ALTER TABLE api_keys ADD COLUMN scopes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN queues TEXT;
ALTER TABLE api_keys ADD COLUMN name TEXT;
ALTER TABLE api_keys ADD COLUMN ends_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE key_heads ADD COLUMN listed BLOB;
