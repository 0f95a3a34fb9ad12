-- What SQLite always refused, PostgreSQL refuses, too: a row without a text that every row has.
ALTER TABLE client_numbers ALTER uuid SET NOT NULL;
ALTER TABLE operator_actions ALTER client SET NOT NULL, ALTER actor SET NOT NULL;
ALTER TABLE queue_flows ALTER counts SET NOT NULL;
ALTER TABLE client_secrets ALTER secret SET NOT NULL;
ALTER TABLE api_keys ALTER client_uuid SET NOT NULL, ALTER hash SET NOT NULL;
ALTER TABLE webhooks ALTER url SET NOT NULL, ALTER events SET NOT NULL, ALTER secret SET NOT NULL;
ALTER TABLE creates ALTER fingerprint SET NOT NULL, ALTER uuid SET NOT NULL;
ALTER TABLE jobs ALTER queue SET NOT NULL;
ALTER TABLE ends ALTER refs SET NOT NULL;
ALTER TABLE tasks ALTER queue SET NOT NULL, ALTER refs SET NOT NULL;
ALTER TABLE client_stats ALTER counts SET NOT NULL;
ALTER TABLE kept ALTER event SET NOT NULL;
