-- Operators suspend and delete clients. A client without a row here is active.
CREATE TABLE client_states(client INTEGER PRIMARY KEY, state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 2),
  changed_ms INTEGER NOT NULL);
-- Clients by number, those that never had a key apart: pages of clients, and what to drop, without a scan.
CREATE TABLE client_numbers(keyless INTEGER NOT NULL, num INTEGER NOT NULL, uuid BLOB NOT NULL,
  PRIMARY KEY(keyless, num)) WITHOUT ROWID;
INSERT INTO client_numbers(keyless, num, uuid)
  SELECT NOT EXISTS(SELECT 1 FROM key_heads k WHERE k.client = c.num), c.num, c.uuid FROM clients c;
-- What operators did; `back` is the negative id, so the newest is first.
CREATE TABLE operator_actions(part INTEGER NOT NULL, back INTEGER NOT NULL, low INTEGER NOT NULL,
  at_ms INTEGER NOT NULL, action INTEGER NOT NULL, changed INTEGER NOT NULL,
  client BLOB NOT NULL, actor TEXT NOT NULL, PRIMARY KEY(part, back)) WITHOUT ROWID;
