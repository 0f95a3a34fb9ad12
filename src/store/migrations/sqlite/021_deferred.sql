-- What a commit adds to listings, counters and the log's last chunk waits in one row of `deferred`, whose number is that of
-- the commit (store/sqlite/sqlite_deferred.h). Before, listings and counters lay beside the chunk that each commit made
-- (log.aside), and commits were counted by chunks.
CREATE TABLE deferred(n INTEGER PRIMARY KEY, listings BLOB, chunk INTEGER, start INTEGER, log BLOB);
INSERT INTO deferred(n, listings)
  WITH
    past(commits) AS (SELECT max(coalesce((SELECT max(g) FROM log), 0),
                                 coalesce((SELECT value FROM marks WHERE name = 'next_chunk'), 0) - 1) +
                             coalesce((SELECT value FROM marks WHERE name = 'commit_offset'), 0)),
    waiting(back, aside) AS (SELECT row_number() OVER (ORDER BY g DESC) - 1, aside FROM log
                             WHERE aside IS NOT NULL AND g >= (SELECT value FROM marks WHERE name = 'merged'))
  SELECT commits - coalesce(back, 0), aside FROM past LEFT JOIN waiting;
UPDATE log SET aside = NULL WHERE aside IS NOT NULL AND g >= (SELECT value FROM marks WHERE name = 'merged');
DELETE FROM marks WHERE name IN ('merged', 'commit_offset');
