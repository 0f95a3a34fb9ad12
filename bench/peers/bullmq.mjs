// BullMQ. Finished jobs are removed, as most installations do; kept ones would only cost it more.
import { Queue, Worker } from 'bullmq';
import { BULK, closedLoop, fail, main, measureBulk, measureDrain, measurePickups, measureSubmits,
  payload, payloads, warmBulk } from './common.mjs';

const DRAIN_CONCURRENCY = 200; // more gained nothing
const PICKUP_CONCURRENCY = 4;
const REMOVED = { removeOnComplete: true, removeOnFail: true };

const connection = port => ({ host: '127.0.0.1', port, maxRetriesPerRequest: null });

function openQueue(name, { port }) {
  const queue = new Queue(name, { connection: connection(port) });
  queue.on('error', error => fail(String(error)));
  return queue;
}

async function openWorker(name, { port }, concurrency, handler) {
  const settings = { connection: connection(port), concurrency, autorun: false };
  const worker = new Worker(name, handler, settings);
  worker.on('error', error => fail(String(error)));
  worker.on('failed', (job, error) => fail(`a job failed: ${error}`));
  await worker.waitUntilReady();
  return worker;
}

const add = (queue, number) => queue.add('noop', payload(number), REMOVED);
const addBulk = (queue, first) =>
  queue.addBulk(payloads(first).map(data => ({ name: 'noop', data, opts: REMOVED })));

await main({
  async submit(options) {
    const queue = openQueue('single', options);
    await measureSubmits(options, number => add(queue, number));
  },

  async bulk(options) {
    const queue = openQueue('bulk', options);
    if (!options.cold) await warmAdd(options);
    await queue.waitUntilReady();
    await measureBulk(options, first => addBulk(queue, first));
  },

  async drain(options) {
    if (!options.cold) await warmDrain(options);
    let counted;
    const worker = await openWorker('bulk', options, DRAIN_CONCURRENCY, async () => {});
    worker.on('completed', () => counted(1));
    await measureDrain(options, async count => { counted = count; worker.run().catch(fail); });
  },

  async pickup(options) {
    const queue = openQueue('pickup', options), handler = { handled() {} };
    const worker = await openWorker('pickup', options, PICKUP_CONCURRENCY,
      async () => handler.handled());
    worker.run().catch(fail);
    await measurePickups(options, number => add(queue, number), handler);
  },
});

async function warmAdd(options) {
  const queue = openQueue('warm', options);
  await closedLoop(warmBulk(options), call => addBulk(queue, call * BULK));
  await queue.obliterate({ force: true });
}

async function warmDrain(options) {
  const queue = openQueue('warm', options);
  await addBulk(queue, 0);
  const worker = await openWorker('warm', options, DRAIN_CONCURRENCY, async () => {});
  await new Promise(resolve => {
    let done = 0;
    worker.on('completed', () => { if (++done === BULK) resolve(); });
    worker.run().catch(fail);
  });
  await worker.close();
}
