// How long requests and streams wait: against a hub that says what the test wants.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Client, HubError, Unreachable, upload, watchChat} from 'buildscale';
import {json, refusal, streamed, streaming, url} from './streaming.js';

const WORKSPACES = '/api/v1/workspaces';
const isLate = error => error instanceof Unreachable && error.cause.name === 'TimeoutError';

test('a request that gets no answer fails when its time is up, however the platform takes it', async () => {
  let signal;
  const deaf = new Client({url, patienceMs: 0, timeoutMs: 5, fetch: async (_, init) => { signal = init.signal; return new Promise(() => {}); }});
  await assert.rejects(deaf.get(WORKSPACES), isLate);
  assert.ok(signal.aborted);
  await assert.rejects(deaf.post(WORKSPACES, {body: {name: 'x'}}), isLate);
  const calm = new Client({url, patienceMs: 0, fetch: async () => new Promise(() => {})});
  await assert.rejects(calm.get(WORKSPACES, {timeoutMs: 5}), isLate);
});

test('a request is patient while its answer goes on, and fails when it stops', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  let stream;
  const hub = new Client({url, patienceMs: 0, timeoutMs: 1_000, fetch: async (_, init) => (stream = streamed(init)).answer});
  const reading = (await hub.read(WORKSPACES)).body.getReader();
  const read = async () => new TextDecoder().decode((await reading.read()).value);
  for (const piece of ['a', 'b', 'c']) {
    const next = read();
    await new Promise(setImmediate);
    t.mock.timers.tick(900);
    stream.send(piece);
    assert.equal(await next, piece);
    // Nobody reads meanwhile, so this does not count.
    t.mock.timers.tick(5_000);
  }
  const last = assert.rejects(reading.read(), isLate);
  await new Promise(setImmediate);
  t.mock.timers.tick(1_000);
  await last;
});

test('a content has the time that a slow line takes for it, and no bound is none', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const waiting = [];
  const hub = new Client({url, patienceMs: 0, timeoutMs: 1_000, fetch: () => new Promise(resolve => waiting.push(resolve))});
  const content = '/api/v1/workspaces/{workspace_id}/files/by-path/content';
  const written = hub.put(content, {path: {workspace_id: 'w'}, query: {path: '/a'}, body: new Uint8Array(160 * 1024)});
  const endless = hub.get(WORKSPACES, {timeoutMs: 0});
  while (waiting.length < 2) await new Promise(setImmediate);
  t.mock.timers.tick(10_999);
  waiting.forEach(answer => answer(json({v: 1})));
  assert.deepEqual([await written, await endless], [{v: 1}, {v: 1}]);
});

test('an upload waits while the hub reads a content whose parts are all there', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const asked = [];
  const hub = new Client({url, patienceMs: 0, timeoutMs: 1_000, fetch: (at, {method}) => method === 'POST' ? new Promise(resolve => asked.push(resolve)) : Promise.resolve(json({v: 1}))});
  const written = upload(hub, {workspace: 'w', path: '/a'}, new Uint8Array(16 * 1024 * 1024 + 1));
  while (asked.length === 0) await new Promise(setImmediate);
  t.mock.timers.tick(2_999);
  asked[0](json({}));
  assert.deepEqual(await written, {v: 1});
});

test('an upload of parts leaves nothing at its signal', async () => {
  const {signal} = new AbortController();
  let listeners = 0;
  for (const [name, change] of [['addEventListener', 1], ['removeEventListener', -1]]) {
    const own = signal[name].bind(signal);
    signal[name] = (...given) => {
      listeners += change;
      own(...given);
    };
  }
  const part = 16 * 1024 * 1024;
  let received = 0;
  const hub = new Client({url, fetch: async (_, {method}) => {
    if (method === 'PUT') return json({v: 1});
    const next = received > part ? undefined : {from: received, size: Math.min(part, part + 1 - received)};
    return json(next ? {request: {method: 'PUT', url: 'http://127.0.0.1:9/part', headers: {}}, parts: {received, next}} : {});
  }});
  const own = globalThis.fetch;
  globalThis.fetch = async (_, {body}) => {
    received += body.size;
    return new Response('stored');
  };
  try {
    assert.deepEqual(await upload(hub, {workspace: 'w', path: '/a'}, new Uint8Array(part + 1), {signal}), {v: 1});
  } finally {
    globalThis.fetch = own;
  }
  assert.deepEqual([received, listeners], [part + 1, 0]);
});

test('a signal ends a request with its reason, before its answer and within it', async () => {
  const begun = [];
  const hub = new Client({url, fetch: async (_, init) => {
    const stream = streamed(init);
    begun.push(stream);
    if (begun.length === 1) await stream.left;
    return stream.answer;
  }});
  for (const count of [1, 2]) {
    const leaving = new AbortController();
    const asked = hub.get(WORKSPACES, {signal: leaving.signal});
    while (begun.length < count) await new Promise(setImmediate);
    leaving.abort(new Error('left'));
    await assert.rejects(asked, /left/);
  }
});

test('a stream is not bounded by the time of a request', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const {hub, opened, streams} = streaming({}, {timeoutMs: 5});
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'});
  const first = reader.next();
  const one = await opened(0);
  t.mock.timers.tick(30_000);
  one.send('id: 1\nevent: chunk\ndata: {}\n\n');
  assert.deepEqual([(await first).value.id, streams.length], [1, 1]);
  await reader.return();
});

test('a stream whose reader is busy for long goes on, and one that is silent for long is opened again', async t => {
  t.mock.timers.enable({apis: ['setTimeout']});
  const waits = [];
  const {hub, opened, streams} = streaming();
  const onConnection = ({state, reason}) => state === 'waiting' && waits.push(reason.cause?.name);
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {onConnection, wake: () => AbortSignal.abort()});
  const first = reader.next();
  const one = await opened(0);
  one.send('id: 1\nevent: chunk\ndata: {}\n\n');
  await first;
  t.mock.timers.tick(600_000);
  const second = reader.next();
  one.send('id: 2\nevent: chunk\ndata: {}\n\n');
  assert.deepEqual([(await second).value.id, streams.length], [2, 1]);
  const third = reader.next();
  await new Promise(setImmediate);
  t.mock.timers.tick(40_000);
  const two = await opened(1);
  two.send('id: 3\nevent: chunk\ndata: {}\n\n');
  assert.deepEqual([(await third).value.id, two.last, waits], [3, '2', ['TimeoutError']]);
  await reader.return();
});

test('a signal ends a stream whose token never comes', async () => {
  const leaving = new AbortController();
  const reading = watchChat(new Client({url, token: () => new Promise(() => {})}), {workspace: 'w', chat: 'c'}, {signal: leaving.signal}).next();
  await new Promise(setImmediate);
  leaving.abort();
  assert.deepEqual(await reading, {done: true, value: undefined});
});

test('an answer that is no event stream is no connection, and is not asked for without a pause', async () => {
  const waits = [];
  const leaving = new AbortController();
  const page = () => new Response('<p>Sign in to this network</p>', {headers: {'content-type': 'text/html'}});
  const {hub} = streaming({0: page, 1: page, 2: page}, {});
  const onConnection = ({state, reason, retryInMs}) => {
    if (state === 'open') assert.fail('it is none');
    if (state === 'waiting') waits.push([reason.name, reason.cause.message, retryInMs]);
    if (waits.length === 3) leaving.abort();
  };
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {signal: leaving.signal, onConnection, wake: () => AbortSignal.abort()});
  assert.ok((await reader.next()).done);
  assert.ok(waits.every(([name, why]) => name === 'Unreachable' && /text\/html, and no event stream/.test(why)), waits.join());
  assert.ok(waits[2][2] >= 200, 'the pauses become longer');
});

test('an answer that is no JSON is an error of the client, with the address without its query', async () => {
  const hub = new Client({url, patienceMs: 0, fetch: async () => new Response('<p>Sign in to this network</p>', {headers: {'content-type': 'text/html'}})});
  const isForeign = error => error instanceof HubError && error.code === 'NO_JSON' && error.status === 200
    && error.message.includes(`${url}${WORKSPACES} is no JSON`) && !error.message.includes('secret');
  await assert.rejects(hub.get(WORKSPACES, {query: {cursor: 'secret'}}), isForeign);
});

test('a refusal that comes after a long answer has begun is an error, whatever the status is', async () => {
  const body = '  {"error": {"code": "STORAGE_FULL", "message": "no room", "details": {}}}';
  const hub = new Client({url, patienceMs: 0, fetch: async () => new Response(body, {status: 201})});
  await assert.rejects(hub.get(WORKSPACES), error => error instanceof HubError && error.code === 'STORAGE_FULL' && error.status === 201);
});

test('an error of the caller, or an address that is none, ends a stream', async () => {
  const source = {workspace: 'w', chat: 'c'};
  for (const at of ['connecting', 'open', 'waiting']) {
    const {hub, streams} = streaming({0: () => new Response('id: 1\n\n', {headers: {'content-type': 'text/event-stream'}})});
    const onConnection = ({state}) => { if (state === at) throw new Error('of the caller'); };
    await assert.rejects(watchChat(hub, source, {onConnection}).next(), /of the caller/);
    assert.ok(streams.length <= 1);
  }
  for (const wrong of ['hub.test', 'localhost:8686', '', 'ftp://hub.test']) {
    const hub = new Client({url: wrong, fetch: () => assert.fail('nothing is sent')});
    await assert.rejects(watchChat(hub, source).next(), /is no address of a hub/);
    await assert.rejects(hub.get(WORKSPACES), /is no address of a hub/);
  }
});

test('a change under a condition whose answer was lost is not made again', async () => {
  const content = '/api/v1/workspaces/{workspace_id}/files/by-path/content';
  const sent = [];
  const hub = new Client({url, fetch: async (_, {method, headers}) => {
    sent.push(method);
    if (sent.length === 1) throw new TypeError('the answer was lost');
    return headers.has('if-match') ? json(refusal('STALE_VERSION'), 412) : json({v: 1});
  }});
  const at = {path: {workspace_id: 'w'}, query: {path: '/a'}, body: new Uint8Array(1)};
  await assert.rejects(hub.put(content, {...at, headers: {'If-Match': '"3"'}}), error => error instanceof Unreachable);
  assert.equal(sent.length, 1);
  sent.length = 0;
  assert.deepEqual([await hub.put(content, at), sent.length], [{v: 1}, 2]);
});

test('a change that no connection took is made when the hub is there again', async () => {
  const sent = [];
  const hub = new Client({url, fetch: async (_, {method}) => {
    sent.push(method);
    if (sent.length % 2) throw new TypeError('fetch failed', {cause: Object.assign(new Error(), {code: 'ECONNREFUSED'})});
    return json({v: 1});
  }});
  const at = {path: {workspace_id: 'w'}, query: {path: '/a'}, body: new Uint8Array(1), headers: {'if-match': '"3"'}};
  await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', at);
  await hub.delete('/api/v1/workspaces/{workspace_id}', {path: {workspace_id: 'w'}});
  assert.deepEqual(sent, ['PUT', 'PUT', 'DELETE', 'DELETE']);
});

test('an error tells an address without its query, in which a ticket or a signature may be', async () => {
  const hub = new Client({url, patienceMs: 0, fetch: async () => { throw new TypeError('fetch failed'); }});
  const failed = await hub.get('/api/v1/workspaces', {query: {limit: 7}}).catch(error => error);
  assert.deepEqual([failed.message, failed.url], [`${url}/api/v1/workspaces cannot be reached`, `${url}/api/v1/workspaces`]);
});

test('a stream comes back after the time that the hub names, and keeps it until it names another', async () => {
  const waits = [];
  const onConnection = ({state, retryInMs}) => state === 'waiting' && waits.push(retryInMs);
  const {hub, opened} = streaming({2: () => json(refusal('RATE_LIMITED'), 429, {'retry-after': '9'})});
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {onConnection, wake: () => AbortSignal.abort()});
  const read = reader.next();
  const one = await opened(0);
  one.send('id: 1\nevent: chunk\nretry: 2000\ndata: {}\n\nretry: 700\n');
  await read;
  const next = reader.next();
  one.end();
  (await opened(1)).fail();
  (await opened(3)).send('id: 2\nevent: chunk\ndata: {}\n\n');
  await next;
  await reader.return();
  const least = [700, 700, 9_000];
  assert.ok(waits.length === 3 && waits.every((wait, at) => wait >= least[at] && wait < least[at] + 500), waits.join());
});

test('a time to come back is seconds or a date, and a time beyond all timers is no reason to come back at once', async () => {
  const asked = async header => {
    const hub = new Client({url, patienceMs: 0, fetch: async () => json(refusal('RATE_LIMITED'), 429, {'retry-after': header})});
    return hub.get(WORKSPACES).then(() => assert.fail('it is refused'), error => error instanceof HubError && error.retryAfterMs);
  };
  assert.equal(await asked('7'), 7_000);
  const inAnHour = await asked(new Date(Date.now() + 3_600_000).toUTCString());
  assert.ok(inAnHour > 3_500_000 && inAnHour <= 3_600_000, `${inAnHour}`);
  assert.equal(await asked(new Date(0).toUTCString()), 0);
  for (const none of ['soon', '', 'Infinity']) assert.equal(await asked(none), undefined);

  const {hub, opened, streams} = streaming({0: () => json(refusal('RATE_LIMITED'), 429, {'retry-after': '99999999'})});
  const leaving = new AbortController();
  const reading = watchChat(hub, {workspace: 'w', chat: 'c'}, {signal: leaving.signal}).next();
  await opened(0);
  // A timer of a millisecond would have ended by then.
  for (const late = AbortSignal.timeout(20); !late.aborted;) await new Promise(setImmediate);
  leaving.abort();
  assert.deepEqual([(await reading).done, streams.length], [true, 1]);
});

test('a ticket that has expired on its way is asked for once more', async () => {
  for (const [refusals, expected] of [[1, {tickets: 2, id: 1}], [9, {tickets: 2, code: 'UNAUTHORIZED'}]]) {
    let [tickets, opened] = [0, 0];
    const hub = new Client({url, patienceMs: 0, fetch: async (at, init) => {
      if (init.method === 'POST') return json({url: `/api/v1/workspaces/w/events?ticket=${++tickets}`}, 201);
      if (++opened <= refusals) return json(refusal('UNAUTHORIZED'), 401);
      const stream = streamed(init);
      stream.send('id: 1\nevent: chunk\ndata: {}\n\n');
      return stream.answer;
    }});
    const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {ticket: true});
    const told = await reader.next().then(({value}) => ({id: value.id}), ({code}) => ({code}));
    assert.deepEqual({tickets, ...told}, expected);
    await reader.return();
  }
});
