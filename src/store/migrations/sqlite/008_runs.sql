-- Workflow runs (src/store/run_columns.h): plans, runs, their events and what these add up to, signals and the decisions
-- about them. What belongs to a run begins with its number.
CREATE TABLE tenants(name TEXT NOT NULL, num INTEGER NOT NULL, PRIMARY KEY(name)) WITHOUT ROWID;
CREATE TABLE plans(tenant INTEGER NOT NULL, plan TEXT NOT NULL, version TEXT NOT NULL, num INTEGER NOT NULL,
  created_ms INTEGER NOT NULL, on_failure INTEGER NOT NULL, step_count INTEGER NOT NULL, fingerprint BLOB,
  PRIMARY KEY(tenant, plan, version)) WITHOUT ROWID;
CREATE TABLE plan_steps(plan INTEGER NOT NULL, idx INTEGER NOT NULL, max_attempts INTEGER NOT NULL, step TEXT,
  queue TEXT, needs BLOB, feeds BLOB, config TEXT, PRIMARY KEY(plan, idx)) WITHOUT ROWID;
CREATE TABLE run_ids(id TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY(id)) WITHOUT ROWID;
CREATE TABLE runs(num INTEGER PRIMARY KEY, id TEXT, tenant INTEGER NOT NULL, tenant_name TEXT, project TEXT,
  environment TEXT, plan TEXT, version TEXT, plan_num INTEGER NOT NULL, on_failure INTEGER NOT NULL,
  created_ms INTEGER NOT NULL, original TEXT,
  fingerprint BLOB, state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 5), inconsistent INTEGER NOT NULL,
  last_seq INTEGER NOT NULL, queued_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
  step_count INTEGER NOT NULL, left_count INTEGER NOT NULL, open_count INTEGER NOT NULL,
  failed_count INTEGER NOT NULL, cycles INTEGER NOT NULL, ending INTEGER NOT NULL, timer INTEGER NOT NULL,
  params TEXT, ending_payload TEXT);
CREATE TABLE run_events(run INTEGER NOT NULL, seq INTEGER NOT NULL, type INTEGER NOT NULL, attempt INTEGER NOT NULL,
  engine_attempt INTEGER NOT NULL, persisted_ms INTEGER NOT NULL, event_id BLOB, emitted TEXT, step TEXT, name TEXT,
  plan TEXT, version TEXT, payload TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID;
CREATE TABLE run_marks(run INTEGER NOT NULL, hash INTEGER NOT NULL, place INTEGER NOT NULL,
  PRIMARY KEY(run, hash)) WITHOUT ROWID;
CREATE TABLE run_steps(run INTEGER NOT NULL, idx INTEGER NOT NULL, step TEXT,
  state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 4), attempt INTEGER NOT NULL, waits INTEGER NOT NULL,
  task INTEGER NOT NULL, tries_left INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,
  result TEXT, error TEXT, override TEXT, target TEXT, PRIMARY KEY(run, idx)) WITHOUT ROWID;
CREATE TABLE refused_events(run INTEGER NOT NULL, key BLOB NOT NULL, at_ms INTEGER NOT NULL, prior TEXT,
  attempted TEXT, PRIMARY KEY(run, key)) WITHOUT ROWID;
CREATE TABLE event_ids(run TEXT NOT NULL, key BLOB NOT NULL, tenant INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  event_id BLOB, PRIMARY KEY(run, key)) WITHOUT ROWID;
CREATE TABLE alerts(id INTEGER PRIMARY KEY, low INTEGER NOT NULL, tenant INTEGER NOT NULL, run INTEGER NOT NULL,
  severity INTEGER NOT NULL, category INTEGER NOT NULL, created_ms INTEGER NOT NULL, seq INTEGER NOT NULL,
  persisted_ms INTEGER NOT NULL, code TEXT, event_id BLOB, event_type TEXT, prior TEXT, attempted TEXT, detail TEXT);
CREATE TABLE signal_decisions(id INTEGER PRIMARY KEY, uuid BLOB, run INTEGER NOT NULL, tenant INTEGER NOT NULL,
  type INTEGER NOT NULL, created_ms INTEGER NOT NULL, signal BLOB, policy BLOB, actor TEXT, role TEXT,
  audit_reason TEXT, source_ip TEXT, payload TEXT, fingerprint BLOB, needs_approval INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 2), processed_ms INTEGER NOT NULL, succeeded INTEGER NOT NULL,
  approved_ms INTEGER NOT NULL, reason TEXT, error_code TEXT, new_run TEXT, approved_by TEXT);
CREATE TABLE signal_keys(run INTEGER NOT NULL, signal BLOB NOT NULL, decision INTEGER NOT NULL,
  PRIMARY KEY(run, signal)) WITHOUT ROWID;
CREATE TABLE policy_keys(policy BLOB NOT NULL, decision INTEGER NOT NULL, PRIMARY KEY(policy)) WITHOUT ROWID;
