-- Who tries a failed job again, and the caller's own name for the work. Jobs of before: their client, none.
ALTER TABLE jobs ADD COLUMN IF NOT EXISTS retry bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS kind_name text COLLATE "C";
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS retry bigint NOT NULL DEFAULT 0;
ALTER TABLE weir_inbox ADD COLUMN IF NOT EXISTS kind text COLLATE "C",
  ADD COLUMN IF NOT EXISTS retry text COLLATE "C";
