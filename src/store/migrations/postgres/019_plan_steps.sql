-- Steps have a timeout and a delay of their own. Plans of a tenant, the newest first.
ALTER TABLE plan_steps ADD COLUMN IF NOT EXISTS timeout_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS delay_ms bigint NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS plan_versions(tenant bigint NOT NULL DEFAULT 0,back bigint NOT NULL DEFAULT 0,
  created_ms bigint NOT NULL DEFAULT 0,step_count bigint NOT NULL DEFAULT 0,plan text COLLATE "C",
  version text COLLATE "C",PRIMARY KEY(tenant,back));
INSERT INTO plan_versions(tenant,back,created_ms,step_count,plan,version) SELECT tenant,-num,created_ms,step_count,
  plan,version FROM plans ON CONFLICT DO NOTHING;
