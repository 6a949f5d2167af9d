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
