-- When a key was last used, to a minute.
ALTER TABLE api_keys ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
