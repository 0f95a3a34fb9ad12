-- How far a running job is, as its worker says with a heartbeat.
ALTER TABLE tasks ADD COLUMN IF NOT EXISTS progress text COLLATE "C";
