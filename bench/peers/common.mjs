// What the peer programs share: the command line, the payload, the measured window and its report.
//
// A program has one function per command. It prepares and warms up (Node compiles what runs often,
// and connections open on first use), then calls measured(). That prints `ready`, waits for a line
// on stdin, runs the loop and prints one JSON line with the members weir-load prints. Whoever
// started the program takes the server's CPU at `ready` and at the JSON line, so neither warm-up
// nor closing of connections is counted. With --cold nothing warms up: for rows about bytes.
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

export const BULK = 1000; // jobs per bulk call, as in Weir's batch row
const PAYLOAD_BYTES = 300;
const PICKUP_GAP_MS = 3;

export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const nowUs = () => Number(process.hrtime.bigint()) / 1e3;

/** A job's payload: PAYLOAD_BYTES of JSON with a few members of different types. */
export function payload(number = 0) {
  const job = { n: number, to: 'someone@example.com', template: 'welcome-v2',
    vars: { a: 1, b: true }, body: '' };
  job.body = 'x'.repeat(Math.max(0, PAYLOAD_BYTES - JSON.stringify(job).length));
  return job;
}

/** BULK payloads, as the members of one bulk call. */
export const payloads = first => Array.from({ length: BULK }, (_, i) => payload(first + i));

/** Runs the command the command line names; whatever goes wrong ends the process with 1. */
export async function main(commands) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: {
    port: { type: 'string' }, admin: { type: 'string' }, by: { type: 'string' },
    cold: { type: 'boolean', default: false },
    inflight: { type: 'string', default: '1' }, seconds: { type: 'string', default: '0' },
    count: { type: 'string', default: '0' } } });
  const options = { by: values.by, cold: values.cold,
    port: Number(values.port), admin: Number(values.admin), inflight: Number(values.inflight),
    seconds: Number(values.seconds), count: Number(values.count) };
  const command = commands[positionals[0]];
  if (!command) fail(`commands: ${Object.keys(commands).join(' ')}`);
  try {
    await command(options);
  } catch (error) {
    fail(error.stack ?? String(error));
  }
  process.exit(0); // libraries keep timers and sockets; nothing is left to do
}

/** Ends the process: a measurement with holes is none. */
export function fail(why) {
  console.error(why);
  process.exit(1);
}

const stdin = createInterface({ input: process.stdin });
const lines = stdin[Symbol.asyncIterator]();

/** Says `ready`, waits for the word to go, runs loop() and prints what it took.
 *  loop() gives {jobs, requests, calls: {name: [microseconds, ...]}}. */
export async function measured(loop) {
  console.log('ready');
  await lines.next();
  const cpuBefore = process.cpuUsage(), began = nowUs();
  const { jobs, requests, calls } = await loop();
  const seconds = (nowUs() - began) / 1e6, cpu = process.cpuUsage(cpuBefore);
  console.log(JSON.stringify({
    seconds, jobs, requests, errors: 0,
    jobs_per_second: jobs / seconds, requests_per_second: requests / seconds,
    cpu_user_s: cpu.user / 1e6, cpu_system_s: cpu.system / 1e6,
    calls: Object.fromEntries(Object.entries(calls).map(([name, us]) => [name, quantiles(us)])),
  }));
  await lines.next(); // connections stay open until the reader has looked at the server
}

function quantiles(microseconds) {
  const sorted = Float64Array.from(microseconds).sort();
  if (!sorted.length) return { count: 0, p50_us: 0, p99_us: 0, p999_us: 0, max_us: 0 };
  const at = share => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { count: sorted.length, p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999),
    max_us: sorted.at(-1) };
}

/** Calls step(number) with `inflight` on their way, for `seconds` or `count` calls. */
export async function closedLoop({ inflight, seconds, count }, step) {
  const times = [], end = seconds ? nowUs() + seconds * 1e6 : Infinity;
  let next = 0;
  const lane = async () => {
    while ((!count || next < count) && nowUs() < end) {
      const number = next++, began = nowUs();
      await step(number);
      times.push(nowUs() - began);
    }
  };
  await Promise.all(Array.from({ length: inflight }, lane));
  return times;
}

/** The submit command: single submits in a closed loop. */
export async function measureSubmits(options, submit) {
  await closedLoop({ inflight: options.inflight, count: 500 }, submit);
  await measured(async () => {
    const times = await closedLoop(options, submit);
    return { jobs: times.length, requests: times.length, calls: { submit: times } };
  });
}

/** A call on each lane of the bulk command, so that its connections are open. */
export const warmBulk = ({ inflight }) => ({ inflight, count: inflight });

/** The bulk command: `count` jobs, BULK a call, `inflight` calls on their way. */
export async function measureBulk({ count, inflight }, submitBulk) {
  await measured(async () => {
    const calls = Math.ceil(count / BULK);
    const times = await closedLoop({ inflight, count: calls }, call => submitBulk(call * BULK));
    return { jobs: calls * BULK, requests: calls, calls: { batch: times } };
  });
}

/** The drain command, for peers that push jobs to a handler: work(counted) starts the workers,
 *  which call counted(jobs) for what they handled; settled() resolves when the last completion is
 *  stored. */
export async function measureDrain({ count }, work, settled = async () => {}) {
  await measured(async () => {
    await new Promise((resolve, reject) => {
      let done = 0;
      work(jobs => { if ((done += jobs) >= count) resolve(); }).catch(reject);
    });
    await settled();
    return { jobs: count, requests: count, calls: {} };
  });
}

/** The pickup command: one job at a time to an idle worker whose handler calls handled(). Submit
 *  and handler share this process, hence one clock. */
export async function measurePickups({ count }, submit, handler) {
  const pickup = async (number, pickups, submits) => {
    const began = nowUs();
    const picked = new Promise(resolve => {
      handler.handled = () => {
        pickups.push(nowUs() - began);
        handler.handled = () => {};
        resolve();
      };
    });
    await submit(number);
    submits.push(nowUs() - began);
    await picked;
    await sleep(PICKUP_GAP_MS + (number % 10) / 10); // a changing part keeps it off any beat
  };
  for (let i = 0; i < 100; i++) await pickup(i, [], []);
  await measured(async () => {
    const pickups = [], submits = [];
    for (let i = 0; i < count; i++) await pickup(i, pickups, submits);
    return { jobs: count, requests: count, calls: { pickup: pickups, submit: submits } };
  });
}
