-- The state of a task is its own, and the state of a job stands beside it. A column means the same for all owners: `type` was
-- the index of a step, `seq` the events of a job, the made deliveries of a stream and the wish to stop a step.
ALTER TABLE tasks RENAME COLUMN type TO step;
ALTER TABLE tasks RENAME COLUMN seq TO done;
ALTER TABLE tasks ADD COLUMN job_state bigint NOT NULL DEFAULT 7, ADD COLUMN cancel_asked bigint NOT NULL DEFAULT 0;
UPDATE tasks SET job_state=state,step=0,done=0 WHERE owner=0;
UPDATE tasks SET cancel_asked=done,done=0,max_retries=attempt-1 WHERE owner=2;
ALTER TABLE tasks ALTER job_state SET DEFAULT 0;
-- A timer is no task: that of a run which is being stopped stood among the tasks, and in its run.
CREATE TABLE timers(owner bigint NOT NULL DEFAULT 0,kind bigint NOT NULL DEFAULT 0,owner_kind bigint NOT NULL DEFAULT 0,
  due_ms bigint NOT NULL DEFAULT 0,PRIMARY KEY(owner,kind));
CREATE INDEX timers_due ON timers(due_ms);
INSERT INTO timers(owner,kind,owner_kind,due_ms) SELECT t.subject,0,1,t.due_ms FROM tasks t
  JOIN runs r ON r.num=t.subject AND r.timer=t.id WHERE t.owner=2 AND t.step<0;
DELETE FROM tasks WHERE owner=2 AND step<0;
ALTER TABLE runs DROP COLUMN timer;
