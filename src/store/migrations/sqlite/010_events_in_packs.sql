-- Events of runs, packed by commit until many are merged into `run_events` together, run by run
-- (store/sqlite/sqlite_events.h).
CREATE TABLE event_packs(n INTEGER PRIMARY KEY, events BLOB NOT NULL);
