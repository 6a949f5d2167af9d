// Connections that break at any place, and readers that come at any time: against a hub that says what the test wants.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Client, Parser, serveTools, Unreachable, watchChat, watchTask, WorkspaceStream} from 'buildscale';
import {begins, CHAT, chatOf, events, ids, json, refusal, streamed, streaming, url} from './streaming.js';

test('the id of a block counts when the block has ended', () => {
  const parser = new Parser();
  assert.deepEqual([parser.push('id: 1\ndata: a\n\nid: 2\ndata: b').map(({id}) => id), parser.lastId], [['1'], '1']);
  assert.deepEqual([parser.push('\n\nid: 3\n\n').map(({id}) => id), parser.lastId], [['2'], '3']);
});

test('a line ends at each of the line ends wherever its text is cut', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const text = ['id: 1', 'data: a', '', 'data: b', '', ''].join(end);
    for (let size = 1; size < 20; size++) {
      const parser = new Parser();
      const seen = [];
      for (let at = 0; at < text.length; at += size) seen.push(...parser.push(text.slice(at, at + size)).map(({data}) => data));
      assert.deepEqual(seen, ['a', 'b'], JSON.stringify([end, size]));
    }
  }
});

test('a long line in small pieces is looked through once', t => {
  const parser = new Parser();
  const piece = 'x'.repeat(1000);
  parser.push('id: 1\ndata: ');
  let longest = 0;
  const split = String.prototype.split;
  t.mock.method(String.prototype, 'split', function (...args) {
    longest = Math.max(longest, this.length);
    return split.apply(this, args);
  });
  for (let count = 0; count < 200; count++) assert.equal(parser.push(piece).length, 0);
  const [block] = parser.push('\r\n\r\n');
  t.mock.restoreAll();
  assert.equal(block.data.length, 200 * piece.length);
  assert.equal(longest, piece.length, 'no piece is joined to those before it, and looked through again');
});

test('an event that was cut off comes with the next connection', async () => {
  const asked = [];
  let first;
  const hub = new Client({url, fetch: async (_, init) => {
    asked.push(init.headers.get('last-event-id'));
    const stream = streamed(init);
    first ??= stream;
    stream.send(asked.length === 1 ? 'id: 1\nevent: chunk\ndata: {}\n\nid: 2\nevent: chunk\nda' : 'id: 2\nevent: chunk\ndata: {}\n\n');
    return stream.answer;
  }});
  const seen = [];
  for await (const {id} of watchChat(hub, {workspace: 'w', chat: 'c'})) {
    seen.push(id);
    if (id === 1) first.fail();
    else break;
  }
  assert.deepEqual([seen, asked], [[1, 2], [null, '1']]);
});

test('a stream that ends within a character gives the event whole with the next connection', async () => {
  const {hub, opened} = streaming();
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {wake: () => AbortSignal.abort()});
  const read = reader.next();
  const one = await opened(0);
  const whole = 'id: 1\nevent: chunk\ndata: {"text":"\u{1F600}"}\n\n';
  const bytes = new TextEncoder().encode(whole);
  one.push(bytes.subarray(0, bytes.length - 6));
  one.end();
  (await opened(1)).send(whole);
  assert.equal((await read).value.data.text, '\u{1F600}');
  await reader.return();
});

test('a task whose last event is known tells nothing more', async () => {
  const hub = new Client({url, fetch: async () => new Response(null, {status: 204})});
  assert.deepEqual(await watchTask(hub, {workspace: 'w', task: 't'}, {after: 9}).next(), {done: true, value: undefined});
});

test('an answer that breaks off is asked for again, or counts as none', async () => {
  let asked = 0;
  const cut = () => new Response(new ReadableStream({pull: controller => controller.error(new TypeError('terminated'))}));
  const fetch = async () => ++asked === 1 ? cut() : new Response('{"workspaces": []}');
  assert.deepEqual([await new Client({url, fetch}).get('/api/v1/workspaces'), asked], [{workspaces: []}, 2]);
  const workspace = {path: {workspace_id: 'w'}};
  const removed = new Client({url, fetch: async () => cut()}).delete('/api/v1/workspaces/{workspace_id}', workspace);
  await assert.rejects(removed, error => error instanceof Unreachable);
});

test('a reader that comes later gets what came before from a chat that goes on', async () => {
  const {hub, opened} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const early = stream.chat(CHAT, {after: 0});
  const first = ids(early, 1);
  const one = await opened(0);
  one.send(begins(0) + events(1));
  assert.deepEqual(await first, [1]);
  const late = stream.chat(CHAT, {after: 0});
  const read = ids(late, 3);
  one.send(events(2));
  assert.deepEqual(await ids(early, 1), [2]);
  const two = await opened(1);
  assert.equal(two.actors, `chat:${CHAT}:0`);
  two.send(begins(0) + events(1, 2, 3));
  assert.deepEqual([await read, await ids(early, 1)], [[1, 2, 3], [3]]);
  await Promise.all([early.return(), late.return()]);
});

test('a reader misses nothing when another one comes that has no place yet', async () => {
  const {hub, opened} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const early = stream.chat(CHAT, {after: 10});
  const first = ids(early, 1);
  (await opened(0)).send(begins(10) + events(11));
  assert.deepEqual(await first, [11]);
  const late = stream.chat(CHAT);
  const read = ids(late, 1);
  const two = await opened(1);
  assert.equal(two.actors, `chat:${CHAT}`);
  // While nothing was open the chat came as far as 15.
  two.send(begins(15) + events(16));
  const three = await opened(2);
  assert.equal(three.actors, `chat:${CHAT}:11`);
  three.send(begins(11) + events(12, 13, 14, 15, 16));
  assert.deepEqual([await read, await ids(early, 5)], [[16], [12, 13, 14, 15, 16]]);
  await Promise.all([early.return(), late.return()]);
});

test('a chat too many ends its own reader alone', async () => {
  const {hub} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const leaving = new AbortController();
  const all = Array.from({length: 32}, (_, at) => stream.chat(chatOf(at), {signal: leaving.signal}).next());
  await assert.rejects(stream.chat(chatOf(99)).next(), RangeError);
  all.push(stream.chat(chatOf(0), {signal: leaving.signal}).next());
  leaving.abort();
  assert.ok((await Promise.all(all)).every(({done}) => done));
});

test('a chat that is gone ends its own readers, also when they have left while the hub was asked', async () => {
  const [one, two] = [chatOf(1), chatOf(2)];
  let refuse;
  const asked = new Promise(resolve => { refuse = () => resolve(json(refusal('NOT_FOUND', {actor: `chat:${two}`}), 404)); });
  const {hub, opened} = streaming({0: () => asked});
  const stream = new WorkspaceStream(hub, 'w');
  const leaving = new AbortController();
  const ending = new AbortController();
  const kept = ids(stream.chat(one, {after: 0, signal: ending.signal}), 1);
  const left = stream.chat(two, {after: 0, signal: leaving.signal}).next();
  await opened(0);
  leaving.abort();
  refuse();
  const next = await opened(1);
  assert.equal(next.actors, `chat:${one}:0`);
  next.send(begins(0) + events(1));
  assert.deepEqual([await kept, (await left).done], [[1], true]);
  ending.abort();
});

test('a name that is no id ends its own reader alone, and an id may be in capitals', async () => {
  const {hub, opened} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const chat = 'abcdefab-0000-7000-8000-00000000000f';
  const leaving = new AbortController();
  const reading = stream.chat(chat.toUpperCase(), {after: 0, signal: leaving.signal}).next();
  for (const wrong of ['', '..', 'a,b', `${chat}:7`]) assert.throws(() => stream.chat(wrong), /is no chat/);
  assert.throws(() => stream.task('t'), /is no task/);
  const one = await opened(0);
  assert.equal(one.actors, `chat:${chat}:0`);
  one.send(begins(0).replaceAll(CHAT, chat) + events(1).replaceAll(CHAT, chat));
  assert.equal((await reading).value.id, 1);
  leaving.abort();
});

test('a reader that aborts while it is busy holds no connection', async () => {
  const {hub, opened} = streaming();
  const leaving = new AbortController();
  const reader = new WorkspaceStream(hub, 'w').chat(CHAT, {after: 0, signal: leaving.signal});
  const first = reader.next();
  const one = await opened(0);
  one.send(begins(0) + events(1));
  await first;
  leaving.abort();
  await one.left;
});

test('after a refusal of all, the next reader is alone on its connection', async () => {
  const {hub, opened} = streaming({1: () => json(refusal('UNAUTHORIZED'), 401)});
  const stream = new WorkspaceStream(hub, 'w');
  const [busy, told] = [stream.chat(CHAT, {after: 0}), stream.chat(chatOf(2))];
  const first = busy.next();
  const refused = assert.rejects(told.next(), {code: 'UNAUTHORIZED'});
  const one = await opened(0);
  one.send(begins(0) + events(1));
  await first;
  one.end();
  // The other one is busy with its event meanwhile.
  await refused;
  const leaving = new AbortController();
  const next = stream.chat(chatOf(3), {signal: leaving.signal}).next();
  assert.equal((await opened(2)).actors, `chat:${chatOf(3)}`);
  leaving.abort();
  assert.ok((await next).done);
  await assert.rejects(busy.next(), {code: 'UNAUTHORIZED'});
});

test('a stream that was left gives no event of the piece that it was reading', async () => {
  const {hub, opened} = streaming();
  const leaving = new AbortController();
  const reader = watchChat(hub, {workspace: 'w', chat: 'c'}, {signal: leaving.signal});
  const first = reader.next();
  (await opened(0)).send('id: 1\nevent: chunk\ndata: {}\n\nid: 2\nevent: chunk\ndata: {}\n\n');
  assert.equal((await first).value.id, 1);
  leaving.abort();
  assert.ok((await reader.next()).done);
});

test('a call is looked for until the hub answers, and a result that cannot be sent is told as a failure', async () => {
  const leaving = new AbortController();
  const [told, answers] = [[], []];
  let looks = 0;
  const waiting = {event: 'call_handed_out', data: {call_id: 'k', tool: 'code__count', args: {}, repeatable: false}};
  const hub = new Client({url, patienceMs: 0, fetch: async (at, init) => {
    const [last] = new URL(at).pathname.split('/').slice(-1);
    switch (last) {
      case 'events': return streamed(init).answer;
      case 'content': return init.method === 'GET' ? json(refusal('NOT_FOUND'), 404) : json({});
      case 'chats': return ++looks === 1 ? json(refusal('UPSTREAM_UNAVAILABLE'), 503) : json({chats: [{chat_id: 'c', waiting_for: [waiting]}]});
      case 'take': return json({});
    }
    answers.push(JSON.parse(init.body));
    leaving.abort();
    return json({});
  }});
  const count = {description: 'Counts.', run: () => 7n};
  await serveTools(hub, 'w', {count}, {signal: leaving.signal, onError: error => told.push(error.name)});
  assert.deepEqual([looks, told, answers.length, answers[0].is_error], [2, ['HubError', 'TypeError'], 1, true]);
  assert.match(answers[0].output, /^The result cannot be sent: .*BigInt/);
});

test('a program forgets calls that ended long ago, and none that runs', async () => {
  const leaving = new AbortController();
  const call = call_id => ({event: 'call_handed_out', data: {call_id, tool: 'code__count', args: {call_id}, repeatable: true}});
  const many = Array.from({length: 1_001}, (_, at) => call(`k${at}`));
  const runs = [];
  let [answered, looks, opened] = [0, 0];
  const hub = new Client({url, patienceMs: 0, fetch: async (at, init) => {
    const [last] = new URL(at).pathname.split('/').slice(-1);
    switch (last) {
      case 'events': return (opened = streamed(init)).answer;
      case 'content': return init.method === 'GET' ? json(refusal('NOT_FOUND'), 404) : json({});
      case 'chats': return json({chats: [{chat_id: 'c', waiting_for: ++looks === 1 ? [call('runs'), ...many] : [call('runs'), call('k1000'), call('k1'), call('k0'), call('last')]}]});
    }
    answered++;
    if (answered === many.length) setImmediate(() => opened.send('id: 1\nevent: reset\ndata: {}\n\n'));
    if (last === 'last') leaving.abort();
    return json({});
  }});
  const count = {description: 'Counts.', run: ({call_id}) => {
    runs.push(call_id);
    return call_id === 'runs' ? new Promise(() => {}) : 7;
  }};
  await serveTools(hub, 'w', {count}, {signal: leaving.signal});
  assert.deepEqual([runs.length, runs.slice(-2)], [1_004, ['k0', 'last']]);
});

test('a call that the hub could not give for long is tried again when it is told of again', async t => {
  // Timers of the test before are to be cleared by then.
  await new Promise(setImmediate);
  t.mock.timers.enable({apis: ['setTimeout']});
  const leaving = new AbortController();
  let [takes, runs, faults, opened] = [0, 0, 0];
  const waiting = {event: 'call_handed_out', data: {call_id: 'k', tool: 'code__ring', args: {}, repeatable: false}};
  const hub = new Client({url, patienceMs: 0, fetch: async (at, init) => {
    const [last] = new URL(at).pathname.split('/').slice(-1);
    switch (last) {
      case 'events': return (opened = streamed(init)).answer;
      case 'content': return init.method === 'GET' ? json(refusal('NOT_FOUND'), 404) : json({});
      case 'chats': return json({chats: []});
      case 'c': return json({waiting_for: [waiting]});
      case 'take': return ++takes <= 6 ? json(refusal('INTERNAL'), 500) : json({});
    }
    leaving.abort();
    return json({});
  }});
  const ring = {description: 'Rings.', run: () => { runs++; return 'rung'; }};
  const told = () => opened.send('id: 1\nevent: chat_updated\ndata: {"chat_id":"c","handed_out":true}\n\n');
  const serving = serveTools(hub, 'w', {ring}, {
    signal: leaving.signal,
    onConnection: ({state}) => state === 'open' && told(),
    // After the sixth it has given up.
    onError: () => ++faults === 6 && setImmediate(told),
  });
  while (!leaving.signal.aborted) {
    await new Promise(setImmediate);
    t.mock.timers.tick(5_000);
  }
  await serving;
  assert.deepEqual([takes, runs], [7, 1]);
});
