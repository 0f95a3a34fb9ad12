// A worker for Weir, Node 18 or later, no package: WEIR_API_KEY=... node worker.mjs
//
// It takes one task at a time from a queue. To run several at a time, start the program several times.
import { writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const url = (process.env.WEIR_URL ?? "http://127.0.0.1:8080") + "/worker/v1/";
const headers = { Authorization: `Bearer ${process.env.WEIR_API_KEY}`, "Content-Type": "application/json" };
const queue = process.env.WEIR_QUEUE ?? "mail";
const mailbox = process.env.MAILBOX ?? "mailbox";
const workerId = `${hostname()}-${process.pid}`;
const claimWaitMs = 10_000; // a claim waits so long for a task
const heartbeatMs = 1000 * Number(process.env.HEARTBEAT_SECONDS ?? 5); // well below the lease, 30 s
const serverAwayMs = 60_000; // a server that restarts is waited for

class Permanent extends Error {} // the work failed, and another attempt would fail in the same way
class Stopped extends Error {} // the job was canceled, the lease is lost, or this program ends

// ---- your work ------------------------------------------------------------------------------------------

// Sends a mail to each receiver: here, a file in a folder. Gives the result of the job.
// A task may run twice. The name of the file comes from the job, so a second run changes nothing.
async function work(task) {
  const { to = [], text = "", pause_seconds: pause = 0 } = task.payload ?? {};
  if (to.length === 0) throw new Permanent("the payload has no receivers");
  for (const [number, receiver] of to.entries()) {
    task.mayGoOn();
    await writeFile(join(mailbox, `${task.job_id}-${receiver}`), text); // a missing folder: tried again later
    task.progress = { percent: Math.floor((100 * (number + 1)) / to.length), note: `sent to ${receiver}` };
    await task.wait(1000 * pause);
  }
  return { sent: to.length };
}

// ---- the protocol ---------------------------------------------------------------------------------------

let programEnds = false;

// One call of the worker API. Every call may be repeated, so a server that is away is waited for.
async function call(verb, body) {
  const giveUpAt = Date.now() + serverAwayMs;
  for (;;) {
    let problem;
    try {
      const answer = await fetch(url + verb, { method: "POST", headers, body: JSON.stringify(body) });
      if (answer.ok) return await answer.json();
      problem = await answer.text();
      if (answer.status < 500 && answer.status !== 429) throw new Permanent(`${verb}: ${problem}`);
    } catch (error) {
      if (error instanceof Permanent) throw error;
      problem = error.cause ?? error;
    }
    if (Date.now() > giveUpAt) throw new Error(`${verb}: ${problem}`);
    await sleep(1000);
  }
}

class Task {
  progress = null;
  dropped = false; // canceled, or the lease is lost

  constructor(claimed) {
    Object.assign(this, claimed);
  }

  // start, heartbeat, finish or release of this task; its result
  async tell(verb, members = {}) {
    const { task_id, token } = this;
    return (await call(verb, { tasks: [{ task_id, token, ...members }] })).results[0];
  }

  // Call it often: it ends the work that has to stop.
  mayGoOn() {
    if (this.dropped || programEnds) throw new Stopped();
  }

  async wait(ms) {
    for (const until = Date.now() + ms; Date.now() < until; await sleep(50)) this.mayGoOn();
  }

  async beat() {
    const result = await this.tell("heartbeat", this.progress ? { progress: this.progress } : {});
    if (!result.ok || result.cancel) this.dropped = true; // lease_lost, or the job was canceled
  }

  async run() {
    if (!(await this.tell("start")).ok) return; // another worker has the task
    let beat = Promise.resolve();
    const heart = setInterval(() => (beat = beat.then(() => this.dropped || this.beat())), heartbeatMs);
    let verb = "finish", members;
    try {
      members = { outcome: "success", result: await work(this) };
    } catch (error) {
      if (error instanceof Stopped) [verb, members] = ["release", { reason: "the worker stops" }];
      else members = failure(error);
    }
    clearInterval(heart);
    await beat;
    if (this.dropped) return; // the task is not ours any more
    console.log(verb, this.job_id, "attempt", this.attempt, members, await this.tell(verb, members));
  }
}

// What `finish` is told about a failure.
function failure(error) {
  const retryable = !(error instanceof Permanent);
  const code = retryable ? error.code ?? error.name : "permanent";
  return { outcome: "failure", error: { code, message: error.message, retryable } };
}

for (const name of ["SIGTERM", "SIGINT"])
  process.on(name, () => {
    programEnds = true;
    console.log("worker", workerId, "was told to end");
  });
console.log("worker", workerId, "serves queue", queue);
while (!programEnds) {
  const claim = { worker_id: workerId, queues: [queue], max: 1, wait_ms: claimWaitMs };
  for (const claimed of (await call("claim", claim)).tasks) {
    const task = new Task(claimed);
    // A task that comes while the program is told to end goes back at once.
    if (programEnds) console.log("release", task.job_id, await task.tell("release"));
    else await task.run();
  }
}
