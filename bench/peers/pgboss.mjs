// pg-boss with LISTEN/NOTIFY: polling alone would make a pickup take half a second.
import { PgBoss } from 'pg-boss';
import { BULK, closedLoop, fail, main, measureBulk, measureDrain, measured, measurePickups,
  measureSubmits, payload, payloads, sleep, warmBulk } from './common.mjs';

const POOL = 10; // pg-boss's default; 64 gave fewer submits
const FETCH_LOOPS = 2;
const WORK = { batchSize: 1000, localConcurrency: 4, pollingIntervalSeconds: 0.5,
  burstWhenBatchFull: true }; // without it a worker takes one batch per notification and then waits
const QUEUES = ['single', 'bulk', 'pickup', 'warm'];

async function open({ port }) {
  const boss = new PgBoss({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    max: POOL, useListenNotify: true, schedule: false });
  boss.on('error', error => fail(String(error)));
  await boss.start();
  return boss;
}

const insert = (boss, queue, first) => boss.insert(queue, payloads(first).map(data => ({ data })));

// A bulk load of a fresh table leaves the planner without statistics, and fetches then take
// seconds; a system that has run for a while has them.
const analyze = boss => boss.getDb().executeSql('vacuum analyze pgboss.job_common');

async function unfinished(boss, queue) {
  const answer = await boss.getDb().executeSql(
    "select count(*)::int as n from pgboss.job where name = $1 and state < 'completed'", [queue]);
  return answer.rows[0].n;
}

/** FETCH_LOOPS loops of fetch() and complete() until the queue is empty; gives the jobs done. */
async function fetchAll(boss, queue, fetches = [], completes = []) {
  let done = 0;
  const loop = async () => {
    for (;;) {
      const began = performance.now();
      const jobs = await boss.fetch(queue, { batchSize: WORK.batchSize });
      if (!jobs.length) return;
      const fetched = performance.now();
      await boss.complete(queue, jobs.map(job => job.id));
      fetches.push((fetched - began) * 1e3);
      completes.push((performance.now() - fetched) * 1e3);
      done += jobs.length;
    }
  };
  await Promise.all(Array.from({ length: FETCH_LOOPS }, loop));
  return done;
}

async function drainByFetch(boss, { count }) {
  await measured(async () => {
    const fetches = [], completes = [];
    const done = await fetchAll(boss, 'bulk', fetches, completes);
    if (done !== count) fail(`${done} jobs were fetched, ${count} were there`);
    const calls = { claim: fetches, finish: completes };
    return { jobs: done, requests: fetches.length * 2, calls };
  });
}

async function drainByWork(boss, options) {
  await measureDrain(options,
    counted => boss.work('bulk', WORK, async jobs => counted(jobs.length)),
    async () => { while (await unfinished(boss, 'bulk')) await sleep(5); });
}

await main({
  /** Makes the schema and the queues. */
  async prepare(options) {
    const boss = await open(options);
    for (const queue of QUEUES) await boss.createQueue(queue, { notify: true });
  },

  async submit(options) {
    const boss = await open(options);
    await measureSubmits(options, number => boss.send('single', payload(number)));
  },

  async bulk(options) {
    const boss = await open(options);
    if (!options.cold) {
      await closedLoop(warmBulk(options), call => insert(boss, 'warm', call * BULK));
      await fetchAll(boss, 'warm');
    }
    await measureBulk(options, first => insert(boss, 'bulk', first));
  },

  /** --by fetch: fetch() and complete() in loops, the faster way; --by work: handlers of work(). */
  async drain(options) {
    const boss = await open(options);
    if (!options.cold) await insert(boss, 'warm', 0);
    await analyze(boss);
    await fetchAll(boss, 'warm');
    await (options.by === 'work' ? drainByWork : drainByFetch)(boss, options);
  },

  async pickup(options) {
    const boss = await open(options), handler = { handled() {} };
    await boss.work('pickup', { batchSize: 1, pollingIntervalSeconds: WORK.pollingIntervalSeconds },
      async () => handler.handled());
    await sleep(1500); // until the listener is connected
    await measurePickups(options, number => boss.send('pickup', payload(number)), handler);
  },
});
