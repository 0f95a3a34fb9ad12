-- Steps have a timeout and a delay of their own.
ALTER TABLE plan_steps ADD COLUMN timeout_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plan_steps ADD COLUMN delay_ms INTEGER NOT NULL DEFAULT 0;
-- Plans of a tenant, the newest first: `back` is the negative number of the plan.
CREATE TABLE plan_versions(tenant INTEGER NOT NULL, back INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  step_count INTEGER NOT NULL, plan TEXT, version TEXT, PRIMARY KEY(tenant, back)) WITHOUT ROWID;
INSERT INTO plan_versions SELECT tenant, -num, created_ms, step_count, plan, version FROM plans;
