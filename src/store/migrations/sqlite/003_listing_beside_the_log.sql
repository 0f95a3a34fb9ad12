-- What a commit adds to listings and counters lies beside its events (log.aside) until it is merged into `list`
-- and `client_stats`: one page less for each of them in every commit. Chunks from marks.merged on may have one.
ALTER TABLE log ADD COLUMN aside BLOB;
INSERT OR REPLACE INTO marks(name, value)
  SELECT 'merged', max(coalesce((SELECT max(g) FROM log), 0) + 1,
                       coalesce((SELECT value FROM marks WHERE name = 'next_chunk'), 0));
-- What waited in `pend` is merged here, once: 14 bytes an entry (client 4, bucket 1, removed 1, id 8, little endian);
-- the last word on a key counts.
CREATE TEMP TABLE words AS
  WITH RECURSIVE
    nth(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM nth WHERE i < (SELECT max(length(data)) / 14 FROM pend)),
    place(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM place WHERE k < 13),
    entry(g, i, x) AS (SELECT g, i, hex(substr(data, 1 + 14 * i, 14)) FROM pend JOIN nth ON 14 * (i + 1) <= length(data)),
    byte(g, i, k, v) AS (SELECT g, i, k, (instr('0123456789ABCDEF', substr(x, 1 + 2 * k, 1)) - 1) * 16 +
                                         (instr('0123456789ABCDEF', substr(x, 2 + 2 * k, 1)) - 1)
                         FROM entry JOIN place)
  SELECT sum(CASE WHEN k < 4 THEN v << (8 * k) ELSE 0 END) AS client, sum(CASE k WHEN 4 THEN v ELSE 0 END) AS bucket,
         sum(CASE WHEN k > 5 THEN v << (8 * (k - 6)) ELSE 0 END) AS id, sum(CASE k WHEN 5 THEN v ELSE 0 END) AS removed,
         g, i
  FROM byte GROUP BY g, i;
DELETE FROM list WHERE (client, bucket, id) IN (SELECT client, bucket, id FROM words);
INSERT INTO list(client, bucket, id)
  SELECT client, bucket, id FROM (SELECT client, bucket, id, removed,
      row_number() OVER (PARTITION BY client, bucket, id ORDER BY g DESC, i DESC) AS nth FROM words)
  WHERE nth = 1 AND NOT removed;
DROP TABLE words;
DROP TABLE pend;
