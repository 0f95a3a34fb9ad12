-- No other states are storable.
ALTER TABLE runs DROP CONSTRAINT IF EXISTS runs_states;
ALTER TABLE runs ADD CONSTRAINT runs_states CHECK(state IN (0,1,2,3,4,5));
ALTER TABLE run_steps DROP CONSTRAINT IF EXISTS run_steps_states;
ALTER TABLE run_steps ADD CONSTRAINT run_steps_states CHECK(state IN (0,1,2,3,4));
ALTER TABLE signal_decisions DROP CONSTRAINT IF EXISTS signal_decisions_states;
ALTER TABLE signal_decisions ADD CONSTRAINT signal_decisions_states CHECK(state IN (0,1,2));
