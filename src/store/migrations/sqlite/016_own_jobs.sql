-- Who tries a failed job again, and the caller's own name for the work. Jobs of before: their client, none.
ALTER TABLE jobs ADD COLUMN retry INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN kind_name TEXT;
ALTER TABLE tasks ADD COLUMN retry INTEGER NOT NULL DEFAULT 0;
ALTER TABLE weir_inbox ADD COLUMN kind TEXT;
ALTER TABLE weir_inbox ADD COLUMN retry TEXT;
