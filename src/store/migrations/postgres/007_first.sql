-- The schema of the first program that had PostgreSQL. No program runs this file: tests of former schemas begin with it.
CREATE OR REPLACE FUNCTION weir_check(there bigint,wanted bigint,what text) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN IF there<>wanted THEN RAISE EXCEPTION '% of % rows of % are there',there,wanted,what
  USING ERRCODE='40001'; END IF; RETURN true; END $$;
CREATE TABLE IF NOT EXISTS marks(name text PRIMARY KEY,value bigint NOT NULL);
CREATE TABLE IF NOT EXISTS log(g bigint PRIMARY KEY,data bytea NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id()) WITH (toast_tuple_target=8160,
  autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1);
ALTER TABLE log ALTER data SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS log_xid ON log(xid,g) WHERE g>0;
CREATE SEQUENCE IF NOT EXISTS log_numbers INCREMENT 4096;
CREATE TABLE IF NOT EXISTS list(client bigint NOT NULL,bucket smallint NOT NULL,id bigint NOT NULL,
  PRIMARY KEY(client,bucket,id));
CREATE TABLE IF NOT EXISTS client_deltas(client bigint NOT NULL,counts bytea NOT NULL) WITH (fillfactor=100,
  autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.2);
CREATE INDEX IF NOT EXISTS client_deltas_client ON client_deltas(client);
CREATE TABLE IF NOT EXISTS targets(target bigint PRIMARY KEY,slots bigint NOT NULL,failures bigint NOT NULL,
  open_again_ms bigint NOT NULL,seen_ms bigint NOT NULL) WITH (fillfactor=50,autovacuum_vacuum_threshold=1000,
  autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS lanes(slot smallint PRIMARY KEY,token bigint NOT NULL,node bigint NOT NULL,
  batch bigint NOT NULL,seen timestamptz NOT NULL,pid int NOT NULL,started timestamptz) WITH (fillfactor=20,
  autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS duties(name text PRIMARY KEY,pid int NOT NULL,started timestamptz,
  beat timestamptz NOT NULL) WITH (fillfactor=20,autovacuum_vacuum_threshold=1000,
  autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS clients(uuid bytea,num bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,
  PRIMARY KEY(uuid));
CREATE TABLE IF NOT EXISTS client_secrets(client bigint NOT NULL DEFAULT 0,secret bytea,former bytea,
  rotated_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(client));
CREATE TABLE IF NOT EXISTS api_keys(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  client bigint NOT NULL DEFAULT 0,client_uuid bytea,hash bytea,created_ms bigint NOT NULL DEFAULT 0,
  expires_ms bigint NOT NULL DEFAULT 0,revoked_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(id));
CREATE TABLE IF NOT EXISTS key_heads(client bigint NOT NULL DEFAULT 0,active bigint NOT NULL DEFAULT 0,
  PRIMARY KEY(client));
CREATE TABLE IF NOT EXISTS webhooks(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  client bigint NOT NULL DEFAULT 0,url text COLLATE "C",events text COLLATE "C",
  created_ms bigint NOT NULL DEFAULT 0,secret bytea,enabled bigint NOT NULL DEFAULT 0,former bytea,
  rotated_ms bigint NOT NULL DEFAULT 0,failing_since_ms bigint NOT NULL DEFAULT 0,
  disabled_ms bigint NOT NULL DEFAULT 0,disabled_why bigint NOT NULL DEFAULT 0,PRIMARY KEY(id));
CREATE TABLE IF NOT EXISTS webhook_keys(client bigint NOT NULL DEFAULT 0,fingerprint bytea,
  webhook bigint NOT NULL DEFAULT 0,PRIMARY KEY(client,fingerprint));
CREATE TABLE IF NOT EXISTS creates(scope text COLLATE "C",name text COLLATE "C",fingerprint bytea,uuid bytea,
  created_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(scope,name));
CREATE TABLE IF NOT EXISTS jobs(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  client bigint NOT NULL DEFAULT 0,type bigint NOT NULL DEFAULT 0,kind bigint NOT NULL DEFAULT 0,
  priority bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,execution_ms bigint NOT NULL DEFAULT 0,
  seed bigint NOT NULL DEFAULT 0,duration_ms bigint NOT NULL DEFAULT 0,should_fail bigint NOT NULL DEFAULT 0,
  payload_size bigint NOT NULL DEFAULT 0,max_runtime_ms bigint NOT NULL DEFAULT 0,
  max_retries bigint NOT NULL DEFAULT 0,queue text COLLATE "C",callback text COLLATE "C",idem_key text COLLATE "C",
  idem_fingerprint bytea,payload text COLLATE "C",traceparent text COLLATE "C",PRIMARY KEY(id))
  WITH (autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1);
CREATE TABLE IF NOT EXISTS ends(id bigint NOT NULL DEFAULT 0,client bigint NOT NULL DEFAULT 0,
  kind bigint NOT NULL DEFAULT 0,state bigint NOT NULL DEFAULT 0,attempt bigint NOT NULL DEFAULT 0,
  token bigint NOT NULL DEFAULT 0,started_ms bigint NOT NULL DEFAULT 0,finished_ms bigint NOT NULL DEFAULT 0,
  last_us bigint NOT NULL DEFAULT 0,seq bigint NOT NULL DEFAULT 0,result text COLLATE "C",error text COLLATE "C",
  refs bytea,PRIMARY KEY(id)) WITH (autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1);
CREATE TABLE IF NOT EXISTS archives(job bigint NOT NULL DEFAULT 0,attempt bigint NOT NULL DEFAULT 0,
  started_ms bigint NOT NULL DEFAULT 0,finished_ms bigint NOT NULL DEFAULT 0,result text COLLATE "C",
  error text COLLATE "C",PRIMARY KEY(job,attempt));
CREATE TABLE IF NOT EXISTS tasks(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  client bigint NOT NULL DEFAULT 0,owner bigint NOT NULL DEFAULT 0,type bigint NOT NULL DEFAULT 0,
  kind bigint NOT NULL DEFAULT 0,priority bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,
  max_runtime_ms bigint NOT NULL DEFAULT 0,max_retries bigint NOT NULL DEFAULT 0,subject bigint NOT NULL DEFAULT 0,
  target bigint NOT NULL DEFAULT 0,queue text COLLATE "C",state bigint NOT NULL DEFAULT 0,
  attempt bigint NOT NULL DEFAULT 0,token bigint NOT NULL DEFAULT 0,lease_ms bigint NOT NULL DEFAULT 0,
  due_ms bigint NOT NULL DEFAULT 0,started_ms bigint NOT NULL DEFAULT 0,last_us bigint NOT NULL DEFAULT 0,
  seq bigint NOT NULL DEFAULT 0,worker text COLLATE "C",refs bytea,phase smallint NOT NULL,place bigint NOT NULL,
  PRIMARY KEY(id)) WITH (fillfactor=60,autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,
  autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS client_stats(client bigint NOT NULL DEFAULT 0,counts bytea,PRIMARY KEY(client))
  WITH (fillfactor=50,autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,
  autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS kept(job bigint NOT NULL DEFAULT 0,seq bigint NOT NULL DEFAULT 0,event bytea,
  PRIMARY KEY(job,seq));
CREATE TABLE IF NOT EXISTS deliveries(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  client bigint NOT NULL DEFAULT 0,webhook bigint NOT NULL DEFAULT 0,job bigint NOT NULL DEFAULT 0,
  event bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,state bigint NOT NULL DEFAULT 0,
  attempts bytea,PRIMARY KEY(id)) WITH (autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1);
CREATE TABLE IF NOT EXISTS request_days(client bigint NOT NULL DEFAULT 0,day bigint NOT NULL DEFAULT 0,
  requests bigint NOT NULL DEFAULT 0,PRIMARY KEY(client)) WITH (fillfactor=50,autovacuum_vacuum_threshold=1000,
  autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE TABLE IF NOT EXISTS weir_inbox(failed_ms bigint NOT NULL DEFAULT 0,id bigint NOT NULL DEFAULT 0,
  created_ms bigint NOT NULL DEFAULT 0,execution_ms bigint NOT NULL DEFAULT 0,priority bigint NOT NULL DEFAULT 0,
  max_runtime_ms bigint NOT NULL DEFAULT 0,max_retries bigint NOT NULL DEFAULT 0,client text COLLATE "C",
  type text COLLATE "C",work_kind text COLLATE "C",queue text COLLATE "C",callback text COLLATE "C",
  payload text COLLATE "C",idempotency_key text COLLATE "C",error text COLLATE "C",PRIMARY KEY(failed_ms,id));
ALTER TABLE tasks DROP CONSTRAINT IF EXISTS tasks_states;
ALTER TABLE tasks ADD CONSTRAINT tasks_states CHECK(state IN (0,1,2,3));
ALTER TABLE ends DROP CONSTRAINT IF EXISTS ends_states;
ALTER TABLE ends ADD CONSTRAINT ends_states CHECK(state IN (4,5,6));
ALTER TABLE deliveries DROP CONSTRAINT IF EXISTS deliveries_states;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_states CHECK(state IN (0,1,2));
CREATE UNIQUE INDEX IF NOT EXISTS clients_num ON clients(num);
CREATE INDEX IF NOT EXISTS api_keys_client ON api_keys(client);
CREATE INDEX IF NOT EXISTS webhooks_client ON webhooks(client);
CREATE INDEX IF NOT EXISTS jobs_client ON jobs(client,id) WHERE id>0;
CREATE UNIQUE INDEX IF NOT EXISTS jobs_key ON jobs(client,idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS ends_client ON ends(client,state,id) WHERE id>0;
CREATE INDEX IF NOT EXISTS tasks_ready ON tasks(queue,priority DESC,place) WHERE phase=1;
CREATE INDEX IF NOT EXISTS tasks_ready_client ON tasks(client,queue,priority DESC,place) WHERE phase>0 AND phase<2;
CREATE INDEX IF NOT EXISTS tasks_client ON tasks(client,id) WHERE id>0;
CREATE INDEX IF NOT EXISTS tasks_subject ON tasks(subject) WHERE subject<>0;
CREATE INDEX IF NOT EXISTS tasks_due ON tasks(due_ms) WHERE phase=0;
CREATE INDEX IF NOT EXISTS tasks_held ON tasks(id) WHERE phase=2;
CREATE INDEX IF NOT EXISTS tasks_target ON tasks(target,phase,place) WHERE target<>0 AND phase>1;
INSERT INTO marks(name,value) VALUES('hooks',0) ON CONFLICT DO NOTHING;
INSERT INTO client_stats(client,counts) VALUES(0,'') ON CONFLICT DO NOTHING;
INSERT INTO lanes(slot,token,node,batch,seen,pid) SELECT n,0,0,0,'-infinity',0 FROM generate_series(0,
  63) n ON CONFLICT DO NOTHING;
CREATE SEQUENCE IF NOT EXISTS weir_inbox_numbers;
ALTER TABLE weir_inbox ALTER id SET DEFAULT (extract(epoch
  FROM clock_timestamp())*1000000)::bigint*64+nextval('weir_inbox_numbers')%64,
  ALTER created_ms SET DEFAULT (extract(epoch FROM clock_timestamp())*1000)::bigint, ALTER priority SET DEFAULT -1,
  ALTER max_runtime_ms SET DEFAULT -1, ALTER max_retries SET DEFAULT -1, ALTER client SET NOT NULL;
ALTER TABLE weir_inbox ADD COLUMN IF NOT EXISTS execution_at timestamptz;
ALTER TABLE weir_inbox DROP CONSTRAINT IF EXISTS weir_inbox_sizes;
ALTER TABLE weir_inbox ADD CONSTRAINT weir_inbox_sizes CHECK(coalesce(octet_length(payload),0)<=1048576
  AND octet_length(concat(client,type,work_kind,queue,callback,idempotency_key))<=16384
  AND coalesce(octet_length(error),0)<=16384);
CREATE OR REPLACE FUNCTION weir_inbox_fill() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN IF NEW.execution_at IS NOT NULL THEN NEW.execution_ms=ceil(extract(epoch
  FROM NEW.execution_at)*1000)::bigint; END IF; RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER weir_inbox_fill BEFORE INSERT OR UPDATE ON weir_inbox
  FOR EACH ROW EXECUTE FUNCTION weir_inbox_fill();
CREATE OR REPLACE FUNCTION weir_inbox_tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('weir',
  '16:2'); RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER weir_inbox_tell AFTER INSERT OR UPDATE ON weir_inbox FOR EACH ROW
  WHEN (NEW.failed_ms=0) EXECUTE FUNCTION weir_inbox_tell();
