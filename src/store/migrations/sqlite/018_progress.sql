-- How far a running job is, as its worker says with a heartbeat: {"percent", "note", "at"}.
ALTER TABLE tasks ADD COLUMN progress TEXT;
