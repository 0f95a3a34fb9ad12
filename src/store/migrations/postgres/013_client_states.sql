-- Operators suspend and delete clients. A client without a row in client_states is active. Clients by number, those
-- that never had a key apart. What operators did.
CREATE TABLE IF NOT EXISTS client_states(client bigint NOT NULL DEFAULT 0,state bigint NOT NULL DEFAULT 0,
  changed_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(client));
ALTER TABLE client_states DROP CONSTRAINT IF EXISTS client_states_states;
ALTER TABLE client_states ADD CONSTRAINT client_states_states CHECK(state IN (0,1,2));
CREATE INDEX IF NOT EXISTS client_states_suspended ON client_states(client) WHERE state=1;
CREATE TABLE IF NOT EXISTS client_numbers(keyless bigint NOT NULL DEFAULT 0,num bigint NOT NULL DEFAULT 0,
  uuid bytea,PRIMARY KEY(keyless,num));
CREATE TABLE IF NOT EXISTS operator_actions(part bigint NOT NULL DEFAULT 0,back bigint NOT NULL DEFAULT 0,
  low bigint NOT NULL DEFAULT 0,at_ms bigint NOT NULL DEFAULT 0,action bigint NOT NULL DEFAULT 0,
  changed bigint NOT NULL DEFAULT 0,client bytea,actor text COLLATE "C",PRIMARY KEY(part,back));
INSERT INTO client_numbers(keyless,num,uuid) SELECT (NOT EXISTS(SELECT 1
  FROM key_heads k WHERE k.client=c.num))::int,c.num,c.uuid FROM clients c WHERE NOT EXISTS(SELECT 1
  FROM client_numbers n WHERE n.num=c.num AND n.keyless IN (0,1));
