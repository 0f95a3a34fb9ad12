-- How much of its day a client has used; when and why a webhook was disabled.
CREATE TABLE request_days(client INTEGER PRIMARY KEY, day INTEGER NOT NULL, requests INTEGER NOT NULL);
ALTER TABLE webhooks ADD COLUMN disabled_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhooks ADD COLUMN disabled_why INTEGER NOT NULL DEFAULT 0;
