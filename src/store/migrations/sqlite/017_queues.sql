-- What a client has set for one of its queues: paused, and what a job is given that does not say.
CREATE TABLE queues(client INTEGER NOT NULL, queue TEXT NOT NULL, paused INTEGER NOT NULL,
  changed_ms INTEGER NOT NULL, retry INTEGER NOT NULL, max_retries INTEGER NOT NULL,
  queue_ttl_ms INTEGER NOT NULL, retention_ms INTEGER NOT NULL, PRIMARY KEY(client, queue)) WITHOUT ROWID;
-- Attempts that ended lately, by queue; written where several nodes share a store.
CREATE TABLE queue_flows(client INTEGER NOT NULL, queue TEXT NOT NULL, slot INTEGER NOT NULL,
  counts BLOB NOT NULL, PRIMARY KEY(client, queue)) WITHOUT ROWID;
