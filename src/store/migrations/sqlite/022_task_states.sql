-- The state of a task is its own, and the state of a job stands beside it. A column means the same for all owners: `type` was
-- the index of a step, `seq` the events of a job, the made deliveries of a stream and the wish to stop a step.
DROP VIEW job_states;
ALTER TABLE tasks RENAME COLUMN type TO step;
ALTER TABLE tasks RENAME COLUMN seq TO done;
ALTER TABLE tasks ADD COLUMN job_state INTEGER NOT NULL DEFAULT 7;
ALTER TABLE tasks ADD COLUMN cancel_asked INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET job_state = state, step = 0, done = 0 WHERE owner = 0;
UPDATE tasks SET cancel_asked = done, done = 0, max_retries = attempt - 1 WHERE owner = 2;
CREATE VIEW job_states AS
 SELECT j.id, j.client, j.queue, coalesce(e.state, t.job_state) AS state,
 coalesce(e.attempt, t.attempt) AS attempt, j.created_ms,
 coalesce(e.last_us, t.last_us) / 1000 AS updated_ms
 FROM jobs j LEFT JOIN tasks t ON t.id = j.id LEFT JOIN ends e ON e.id = j.id;
-- A timer is no task: that of a run which is being stopped stood among the tasks, and in its run.
CREATE TABLE timers(owner INTEGER NOT NULL, kind INTEGER NOT NULL, owner_kind INTEGER NOT NULL, due_ms INTEGER NOT NULL,
  PRIMARY KEY(owner, kind)) WITHOUT ROWID;
INSERT INTO timers SELECT t.subject, 0, 1, t.due_ms FROM tasks t JOIN runs r ON r.num = t.subject AND r.timer = t.id
  WHERE t.owner = 2 AND t.step < 0;
DELETE FROM tasks WHERE owner = 2 AND step < 0;
ALTER TABLE runs DROP COLUMN timer;
