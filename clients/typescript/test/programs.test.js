// What a program may do with the client without a surprise: against a hub that says what the test wants.
import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';
import {Client, HubError, serveTools, watchChat, watchTask} from 'buildscale';
import {json, refusal, streaming, url} from './streaming.js';

const WORKSPACES = '/api/v1/workspaces';
const CONTENT = '/api/v1/workspaces/{workspace_id}/files/by-path/content';
const at = {path: {workspace_id: 'w'}, query: {path: '/a'}};

/** A server on loopback, for the time of a test. */
async function listening(t, answer) {
  const server = createServer(answer);
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  return `http://127.0.0.1:${server.address().port}`;
}

test('many streams and requests have one listener at their signal, and leave none', async () => {
  const leaving = new AbortController();
  const {signal} = leaving;
  let [listeners, most] = [0, 0];
  for (const [name, change] of [['addEventListener', 1], ['removeEventListener', -1]]) {
    const own = signal[name].bind(signal);
    signal[name] = (...given) => {
      most = Math.max(most, listeners += change);
      own(...given);
    };
  }
  const {hub, opened} = streaming({0: () => json({workspaces: []})});
  await hub.get(WORKSPACES, {signal});
  const reading = Array.from({length: 20}, () => watchChat(hub, {workspace: 'w', chat: 'c'}, {signal}).next());
  await opened(20);
  leaving.abort();
  assert.ok((await Promise.all(reading)).every(({done}) => done));
  assert.deepEqual([most, listeners], [1, 0]);
});

test('a content that the program drops without a look holds no connection', async t => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let isOpen = true;
  const address = await listening(t, (_, answer) => {
    answer.on('close', () => { isOpen = false; });
    answer.write('the beginning of a long content');
  });
  assert.equal((await new Client({url: address}).read(CONTENT, at)).status, 200);
  for (let rounds = 0; isOpen && rounds < 1_000; rounds++) {
    collect();
    await new Promise(setImmediate);
  }
  assert.equal(isOpen, false);
});

test('a redirect makes no read of a change', async t => {
  const sent = [];
  const address = await listening(t, ({method, url}, answer) => {
    sent.push(method);
    if (url === WORKSPACES) answer.writeHead(301, {location: '/elsewhere'}).end();
    else answer.end('{"workspaces": []}');
  });
  const hub = new Client({url: address, patienceMs: 0});
  const isRedirect = error => error instanceof HubError && error.code === 'NO_ENVELOPE' && /a redirect, and not from a hub/.test(error.message);
  await assert.rejects(hub.post(WORKSPACES, {body: {name: 'x'}}), isRedirect);
  assert.deepEqual([await hub.get(WORKSPACES), sent], [{workspaces: []}, ['POST', 'GET', 'GET']]);
});

test('a reader that has a content by its ETag is told so', async () => {
  const hub = new Client({url, patienceMs: 0, fetch: async (_, {headers}) => new Response(null, {status: headers.get('if-none-match') === '"1"' ? 304 : 200})});
  assert.equal((await hub.read(CONTENT, {...at, headers: {'if-none-match': '"1"'}})).status, 304);
});

test('a stream without an id is an error, and not the stream of the workspace', async () => {
  const hub = new Client({url, fetch: () => assert.fail('nothing is sent')});
  for (const none of [undefined, '']) {
    await assert.rejects(watchChat(hub, {workspace: 'w', chat: none}).next(), /needs chat/);
    await assert.rejects(watchTask(hub, {workspace: 'w', task: none}).next(), /needs task/);
  }
});

test('a program that is there before its hub declares its functions when the hub comes, and none after its signal', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const leaving = new AbortController();
  const written = [];
  let isAway = true;
  const hub = new Client({url, patienceMs: 0, fetch: async (at, {method, body}) => {
    if (isAway) throw new TypeError('fetch failed');
    if (method === 'PUT') written.push(JSON.parse(new TextDecoder().decode(body)).description);
    if (String(at).endsWith('/events')) leaving.abort();
    return method === 'PUT' ? json({v: 1}) : json(refusal('NOT_FOUND'), 404);
  }});
  const errors = [];
  const onError = error => { errors.push(error.name); isAway = false; setImmediate(() => t.mock.timers.tick(100)); };
  const tools = {ring: {description: 'Rings.', run: () => 'rung'}};
  await serveTools(hub, 'w', tools, {signal: leaving.signal, onError});
  await serveTools(hub, 'w', tools, {signal: leaving.signal});
  assert.deepEqual([errors, written], [['Unreachable'], ['Rings.']]);
});
