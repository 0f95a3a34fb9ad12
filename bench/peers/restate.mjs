// Restate: HTTP/1.1 ingress with keep-alive to one service, which runs in this process. Restate has
// no paused queue: it pushes each job at once, so submits are measured with handlers running, and
// there is no drain of a filled queue but `cycle`: submit and run to completion.
import * as restate from '@restatedev/restate-sdk';
import http from 'node:http';
import http2 from 'node:http2';
import { closedLoop, main, measured, measurePickups, measureSubmits, payload, sleep }
  from './common.mjs';

const SOCKETS = 256;
const agent = new http.Agent({ keepAlive: true, maxSockets: SOCKETS });
const service = { handled() {} };

function post(port, path, body) {
  const text = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers },
      answer => {
        let told = '';
        answer.on('data', part => { told += part; });
        answer.on('end', () => (answer.statusCode < 300 ? resolve(told)
          : reject(new Error(`${path} answered ${answer.statusCode}: ${told}`))));
      });
    request.on('error', reject);
    request.end(text);
  });
}

/** Serves the no-op handler on a port of the system's choice and makes it known to Restate. */
async function serve({ admin }) {
  const noop = restate.service({ name: 'noop', handlers: { run: async () => service.handled() } });
  const server = http2.createServer(
    restate.createEndpointHandler({ services: [noop], logger: () => {} }));
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const uri = `http://127.0.0.1:${server.address().port}`;
  await post(admin, '/deployments', { uri, force: true });
}

const send = (options, number) => post(options.port, '/noop/run/send', payload(number));

/** Submits, and waits until every one was handled; gives the submits' times. */
async function cycle(options) {
  let done = 0, wanted = Infinity, finish;
  const finished = new Promise(resolve => { finish = resolve; });
  service.handled = () => { if (++done >= wanted) finish(); };
  const times = await closedLoop(options, number => send(options, number));
  wanted = times.length;
  if (done < wanted) await finished;
  return { jobs: times.length, requests: times.length, calls: { submit: times } };
}

await main({
  async submit(options) {
    await serve(options);
    let open = 0;
    service.handled = () => { open--; };
    await measureSubmits(options, number => { open++; return send(options, number); });
    // Jobs left behind would be tried again and again on this ended service, at the next row's
    // cost.
    while (open > 0) await sleep(10);
    await sleep(200); // the last completions are on their way
  },

  async cycle(options) {
    await serve(options);
    if (!options.cold) await cycle({ ...options, count: 500, seconds: 0 });
    await measured(() => cycle(options));
    await sleep(200);
  },

  async pickup(options) {
    await serve(options);
    await sleep(500); // whatever the registration set off is over
    await measurePickups(options, number => send(options, number), service);
  },
});
