-- What a client has set for one of its queues. Attempts that ended lately, by queue.
CREATE TABLE IF NOT EXISTS queues(client bigint NOT NULL DEFAULT 0,queue text COLLATE "C",
  paused bigint NOT NULL DEFAULT 0,changed_ms bigint NOT NULL DEFAULT 0,retry bigint NOT NULL DEFAULT 0,
  max_retries bigint NOT NULL DEFAULT 0,queue_ttl_ms bigint NOT NULL DEFAULT 0,
  retention_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(client,queue));
CREATE TABLE IF NOT EXISTS queue_flows(client bigint NOT NULL DEFAULT 0,queue text COLLATE "C",
  slot bigint NOT NULL DEFAULT 0,counts bytea,PRIMARY KEY(client,queue));
CREATE INDEX IF NOT EXISTS queues_paused ON queues(queue) WHERE paused=1;
