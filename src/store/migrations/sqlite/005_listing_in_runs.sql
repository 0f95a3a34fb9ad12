-- Listings in runs: a row of `list` holds up to 200 neighbouring ids, so that adding many costs few searches, however
-- many are there (store/sqlite/sqlite_runs.h, where the function is that fills them).
ALTER TABLE list RENAME TO list_4;
CREATE TABLE list(client INTEGER NOT NULL, bucket INTEGER NOT NULL, first INTEGER NOT NULL, ids BLOB NOT NULL,
  PRIMARY KEY(client, bucket, first)) WITHOUT ROWID;
SELECT list_into_runs();
DROP TABLE list_4;
