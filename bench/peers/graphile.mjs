// graphile-worker. It deletes finished jobs.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { BULK, closedLoop, fail, main, measureBulk, measureDrain, measurePickups, measureSubmits,
  payload, payloads, sleep, warmBulk } from './common.mjs';

const SUBMIT_POOL = 32, WORKER_POOL = 26;
// Without the local queue and batched completion it drains a tenth of this.
const DRAIN = { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0,
  failJobBatchDelay: 0 };
const PICKUP = { concurrentJobs: 4 }; // a local queue would add its own wait to each pickup
const JOBS = 'graphile_worker._private_jobs';

const url = ({ port }) => `postgres://postgres@127.0.0.1:${port}/postgres`;
const logger = new Logger(() => (level, message) => { if (level === 'error') fail(message); });

async function open(options) {
  const pool = new pg.Pool({ connectionString: url(options), max: SUBMIT_POOL });
  pool.on('error', error => fail(String(error)));
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  return { pool, utils };
}

function startWorkers(options, taskList, settings) {
  const worker = { connectionString: url(options), maxPoolSize: WORKER_POOL, logger, ...settings };
  return run({ taskList, noHandleSignals: true, logger, preset: { worker } });
}

const addJobs = (utils, first, spec = {}) =>
  utils.addJobs(payloads(first).map(job => ({ identifier: 'bulk', payload: job, ...spec })));

// Jobs of other rows stand in the same table, and workers would have to step over them.
const clear = pool => pool.query(`truncate ${JOBS}`);

async function left(pool) {
  return (await pool.query(`select count(*)::int as n from ${JOBS}`)).rows[0].n;
}

/** Drains BULK jobs that stand before all others. */
async function warmDrain(options, utils) {
  await addJobs(utils, 0, { identifier: 'warm', priority: -1 });
  let runner;
  await new Promise((resolve, reject) => {
    let done = 0;
    const warm = async () => { if (++done === BULK) resolve(); };
    startWorkers(options, { warm }, DRAIN).then(started => { runner = started; }, reject);
  });
  await runner.stop(); // waits for the completions
}

await main({
  /** Makes the schema. */
  async prepare(options) {
    const { utils } = await open(options);
    await utils.migrate();
  },

  async submit(options) {
    const { utils } = await open(options);
    await measureSubmits(options, number => utils.addJob('single', payload(number)));
  },

  async bulk(options) {
    const { pool, utils } = await open(options);
    if (!options.cold) await closedLoop(warmBulk(options), call => addJobs(utils, call * BULK));
    await clear(pool);
    await measureBulk(options, first => addJobs(utils, first));
  },

  async drain(options) {
    const { pool, utils } = await open(options);
    if (!options.cold) await warmDrain(options, utils);
    await pool.query(`vacuum analyze ${JOBS}`); // statistics a system that has run for a while has
    await measureDrain(options,
      counted => startWorkers(options, { bulk: async () => counted(1) }, DRAIN),
      async () => { while (await left(pool)) await sleep(5); });
  },

  async pickup(options) {
    const { pool, utils } = await open(options), handler = { handled() {} };
    await clear(pool);
    await startWorkers(options, { pickup: async () => handler.handled() }, PICKUP);
    await sleep(1000); // until the listener is connected
    await measurePickups(options, number => utils.addJob('pickup', payload(number)), handler);
  },
});
