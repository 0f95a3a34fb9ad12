-- Workflow runs (store/run_tables.h). Receivers of deliveries, which the first programs did not count here.
-- A program before the twentieth schema made what it missed, so a database may have any of this and of the files that
-- follow up to 019 already.
CREATE TABLE IF NOT EXISTS targets(target bigint PRIMARY KEY,slots bigint NOT NULL,failures bigint NOT NULL,
  open_again_ms bigint NOT NULL,seen_ms bigint NOT NULL) WITH (fillfactor=50,autovacuum_vacuum_threshold=1000,
  autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2);
CREATE INDEX IF NOT EXISTS tasks_target ON tasks(target,phase,place) WHERE target<>0 AND phase>1;
CREATE TABLE IF NOT EXISTS tenants(name text COLLATE "C",num bigint NOT NULL DEFAULT 0,PRIMARY KEY(name));
CREATE TABLE IF NOT EXISTS plans(tenant bigint NOT NULL DEFAULT 0,plan text COLLATE "C",version text COLLATE "C",
  num bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,on_failure bigint NOT NULL DEFAULT 0,
  step_count bigint NOT NULL DEFAULT 0,fingerprint bytea,PRIMARY KEY(tenant,plan,version));
CREATE TABLE IF NOT EXISTS plan_steps(plan bigint NOT NULL DEFAULT 0,idx bigint NOT NULL DEFAULT 0,
  max_attempts bigint NOT NULL DEFAULT 0,step text COLLATE "C",queue text COLLATE "C",needs bytea,feeds bytea,
  config text COLLATE "C",PRIMARY KEY(plan,idx));
CREATE TABLE IF NOT EXISTS run_ids(id text COLLATE "C",run bigint NOT NULL DEFAULT 0,PRIMARY KEY(id));
CREATE TABLE IF NOT EXISTS runs(num bigint NOT NULL DEFAULT 0,id text COLLATE "C",tenant bigint NOT NULL DEFAULT 0,
  tenant_name text COLLATE "C",project text COLLATE "C",environment text COLLATE "C",plan text COLLATE "C",
  version text COLLATE "C",plan_num bigint NOT NULL DEFAULT 0,on_failure bigint NOT NULL DEFAULT 0,
  created_ms bigint NOT NULL DEFAULT 0,original text COLLATE "C",fingerprint bytea,state bigint NOT NULL DEFAULT 0,
  inconsistent bigint NOT NULL DEFAULT 0,last_seq bigint NOT NULL DEFAULT 0,queued_ms bigint NOT NULL DEFAULT 0,
  started_ms bigint NOT NULL DEFAULT 0,ended_ms bigint NOT NULL DEFAULT 0,step_count bigint NOT NULL DEFAULT 0,
  left_count bigint NOT NULL DEFAULT 0,open_count bigint NOT NULL DEFAULT 0,failed_count bigint NOT NULL DEFAULT 0,
  cycles bigint NOT NULL DEFAULT 0,ending bigint NOT NULL DEFAULT 0,timer bigint NOT NULL DEFAULT 0,
  params text COLLATE "C",ending_payload text COLLATE "C",PRIMARY KEY(num));
CREATE TABLE IF NOT EXISTS run_events(run bigint NOT NULL DEFAULT 0,seq bigint NOT NULL DEFAULT 0,
  type bigint NOT NULL DEFAULT 0,attempt bigint NOT NULL DEFAULT 0,engine_attempt bigint NOT NULL DEFAULT 0,
  persisted_ms bigint NOT NULL DEFAULT 0,event_id bytea,emitted text COLLATE "C",step text COLLATE "C",
  name text COLLATE "C",plan text COLLATE "C",version text COLLATE "C",payload text COLLATE "C",PRIMARY KEY(run,
  seq));
CREATE TABLE IF NOT EXISTS run_marks(run bigint NOT NULL DEFAULT 0,hash bigint NOT NULL DEFAULT 0,
  place bigint NOT NULL DEFAULT 0,PRIMARY KEY(run,hash));
CREATE TABLE IF NOT EXISTS run_steps(run bigint NOT NULL DEFAULT 0,idx bigint NOT NULL DEFAULT 0,
  step text COLLATE "C",state bigint NOT NULL DEFAULT 0,attempt bigint NOT NULL DEFAULT 0,
  waits bigint NOT NULL DEFAULT 0,task bigint NOT NULL DEFAULT 0,tries_left bigint NOT NULL DEFAULT 0,
  started_ms bigint NOT NULL DEFAULT 0,ended_ms bigint NOT NULL DEFAULT 0,result text COLLATE "C",
  error text COLLATE "C",override text COLLATE "C",target text COLLATE "C",PRIMARY KEY(run,idx));
CREATE TABLE IF NOT EXISTS refused_events(run bigint NOT NULL DEFAULT 0,key bytea,at_ms bigint NOT NULL DEFAULT 0,
  prior text COLLATE "C",attempted text COLLATE "C",PRIMARY KEY(run,key));
CREATE TABLE IF NOT EXISTS event_ids(run text COLLATE "C",key bytea,tenant bigint NOT NULL DEFAULT 0,
  created_ms bigint NOT NULL DEFAULT 0,event_id bytea,PRIMARY KEY(run,key));
CREATE TABLE IF NOT EXISTS alerts(id bigint NOT NULL DEFAULT 0,low bigint NOT NULL DEFAULT 0,
  tenant bigint NOT NULL DEFAULT 0,run bigint NOT NULL DEFAULT 0,severity bigint NOT NULL DEFAULT 0,
  category bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,seq bigint NOT NULL DEFAULT 0,
  persisted_ms bigint NOT NULL DEFAULT 0,code text COLLATE "C",event_id bytea,event_type text COLLATE "C",
  prior text COLLATE "C",attempted text COLLATE "C",detail text COLLATE "C",PRIMARY KEY(id));
CREATE TABLE IF NOT EXISTS signal_decisions(id bigint NOT NULL DEFAULT 0,uuid bytea,run bigint NOT NULL DEFAULT 0,
  tenant bigint NOT NULL DEFAULT 0,type bigint NOT NULL DEFAULT 0,created_ms bigint NOT NULL DEFAULT 0,signal bytea,
  policy bytea,actor text COLLATE "C",role text COLLATE "C",audit_reason text COLLATE "C",
  source_ip text COLLATE "C",payload text COLLATE "C",fingerprint bytea,needs_approval bigint NOT NULL DEFAULT 0,
  state bigint NOT NULL DEFAULT 0,processed_ms bigint NOT NULL DEFAULT 0,succeeded bigint NOT NULL DEFAULT 0,
  approved_ms bigint NOT NULL DEFAULT 0,reason text COLLATE "C",error_code text COLLATE "C",
  new_run text COLLATE "C",approved_by text COLLATE "C",PRIMARY KEY(id));
CREATE TABLE IF NOT EXISTS signal_keys(run bigint NOT NULL DEFAULT 0,signal bytea,
  decision bigint NOT NULL DEFAULT 0,PRIMARY KEY(run,signal));
CREATE TABLE IF NOT EXISTS policy_keys(policy bytea,decision bigint NOT NULL DEFAULT 0,PRIMARY KEY(policy));
CREATE UNIQUE INDEX IF NOT EXISTS tenants_num ON tenants(num);
