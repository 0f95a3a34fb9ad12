// beanstalkd, through a small client that pipelines on one connection: requests go out together at
// the end of a turn of the event loop, answers come in request order.
import net from 'node:net';
import { BULK, fail, main, measureBulk, measured, measurePickups, measureSubmits, payload }
  from './common.mjs';

const DRAIN_LANES = 64;
const TIME_TO_RUN_S = 60;

class Client {
  #socket; #waiting = []; #first = 0; #unsent = []; #unread = Buffer.alloc(0);

  /** Connects and uses one tube only. */
  static async open({ port }, tube) {
    const client = new Client();
    await client.#connect(port);
    await client.#ask(`use ${tube}\r\n`, 'USING');
    await client.#ask(`watch ${tube}\r\n`, 'WATCHING');
    if (tube !== 'default') await client.#ask('ignore default\r\n', 'WATCHING');
    return client;
  }

  /** Stores a job. */
  put(job) {
    const text = JSON.stringify(job);
    const head = `put 0 0 ${TIME_TO_RUN_S} ${Buffer.byteLength(text)}`;
    return this.#ask(`${head}\r\n${text}\r\n`, 'INSERTED');
  }

  /** Waits for a job; gives its id. */
  async reserve() {
    const { line, body } = await this.#ask('reserve\r\n', 'RESERVED');
    JSON.parse(body);
    return line.split(' ')[1];
  }

  /** Ends a job. */
  remove(id) {
    return this.#ask(`delete ${id}\r\n`, 'DELETED');
  }

  #connect(port) {
    return new Promise(resolve => {
      this.#socket = net.connect(port, '127.0.0.1', resolve);
      this.#socket.setNoDelay(true);
      this.#socket.on('data', data => this.#read(data));
      this.#socket.on('error', error => fail(String(error)));
      this.#socket.on('close', () => fail('beanstalkd closed the connection'));
    });
  }

  async #ask(text, expected) {
    const answer = await new Promise(resolve => {
      this.#waiting.push(resolve);
      if (this.#unsent.push(text) === 1) setImmediate(() => this.#flush());
    });
    if (!answer.line.startsWith(expected)) throw new Error(`beanstalkd answered ${answer.line}`);
    return answer;
  }

  #flush() {
    this.#socket.write(this.#unsent.join(''));
    this.#unsent = [];
  }

  #read(data) {
    const buffer = this.#unread.length ? Buffer.concat([this.#unread, data]) : data;
    let at = 0;
    for (;;) {
      const lineEnd = buffer.indexOf('\r\n', at);
      if (lineEnd < 0) break;
      const line = buffer.toString('latin1', at, lineEnd);
      let end = lineEnd + 2, body;
      if (line.startsWith('RESERVED')) {
        const length = Number(line.slice(line.lastIndexOf(' ') + 1));
        if (buffer.length < end + length + 2) break;
        body = buffer.toString('utf8', end, end + length);
        end += length + 2;
      }
      at = end;
      this.#next()({ line, body });
    }
    this.#unread = buffer.subarray(at);
  }

  // The queue is cut now and then: shift() on each answer would move thousands of entries.
  #next() {
    const resolve = this.#waiting[this.#first++];
    if (this.#first > 4096) this.#waiting.splice(0, this.#first), this.#first = 0;
    return resolve;
  }
}

const putMany = (client, first) =>
  Promise.all(Array.from({ length: BULK }, (_, i) => client.put(payload(first + i))));

/** DRAIN_LANES reserves on their way, each followed by its delete. */
async function drain(client, count) {
  const reserves = [], removes = [];
  let left = count;
  const lane = async () => {
    while (left-- > 0) {
      const began = performance.now(), id = await client.reserve(), reserved = performance.now();
      await client.remove(id);
      reserves.push((reserved - began) * 1e3);
      removes.push((performance.now() - reserved) * 1e3);
    }
  };
  await Promise.all(Array.from({ length: DRAIN_LANES }, lane));
  return { jobs: count, requests: count * 2, calls: { claim: reserves, finish: removes } };
}

async function warmUp(options) {
  const warm = await Client.open(options, 'warm');
  await putMany(warm, 0);
  await drain(warm, BULK);
}

await main({
  async submit(options) {
    const client = await Client.open(options, 'single');
    await measureSubmits(options, number => client.put(payload(number)));
  },

  /** There is no bulk command: BULK puts are sent at once and their answers awaited. */
  async bulk(options) {
    const client = await Client.open(options, 'bulk');
    if (!options.cold) await warmUp(options);
    await measureBulk(options, first => putMany(client, first));
  },

  async drain(options) {
    const client = await Client.open(options, 'bulk');
    if (!options.cold) await warmUp(options);
    await measured(() => drain(client, options.count));
  },

  async pickup(options) {
    const producer = await Client.open(options, 'pickup');
    const consumer = await Client.open(options, 'pickup');
    const handler = { handled() {} };
    const consume = async () => {
      for (;;) {
        const id = await consumer.reserve();
        handler.handled();
        await consumer.remove(id);
      }
    };
    consume().catch(error => fail(String(error)));
    await measurePickups(options, number => producer.put(payload(number)), handler);
  },
});
