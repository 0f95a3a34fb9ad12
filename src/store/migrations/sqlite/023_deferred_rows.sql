-- What runs have deferred is named as what it is (store/sqlite/sqlite_deferred_rows.h).
ALTER TABLE run_marks RENAME TO run_index;
ALTER TABLE mark_packs RENAME TO deferred_run_index;
ALTER TABLE deferred_run_index RENAME COLUMN marks TO block;
ALTER TABLE event_packs RENAME TO deferred_run_events;
ALTER TABLE deferred_run_events RENAME COLUMN events TO block;
