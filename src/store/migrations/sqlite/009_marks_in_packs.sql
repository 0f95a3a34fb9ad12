-- Marks of run events, packed by commit until many are merged into `run_marks` together, in their order
-- (store/sqlite/sqlite_run_index.h).
CREATE TABLE mark_packs(n INTEGER PRIMARY KEY, marks BLOB NOT NULL);
