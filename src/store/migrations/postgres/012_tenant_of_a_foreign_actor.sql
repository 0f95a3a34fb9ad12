-- Which tenant the actor of a refused signal came from, when it is not the run's.
ALTER TABLE signal_decisions ADD COLUMN IF NOT EXISTS actor_tenant text COLLATE "C";
