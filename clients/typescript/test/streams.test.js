// Connections that break at any place, and readers that come at any time: against a hub that says what the test wants.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Client, Parser, serveTools, Unreachable, watchChat, watchTask, WorkspaceStream} from 'buildscale';

const url = 'http://hub.test';
const OPENING = 'id: 7\nevent: cursor\nretry: 10\n\n';

/** A stream whose pieces the test sends. It ends when its request is aborted, as those of `fetch` do. */
function streamed(init) {
  let controller;
  const body = new ReadableStream({start: given => { controller = given; }});
  init.signal?.addEventListener('abort', () => controller.error(init.signal.reason));
  return {
    answer: new Response(body, {headers: {'content-type': 'text/event-stream'}}),
    send: text => controller.enqueue(new TextEncoder().encode(text)),
    fail: () => controller.error(new TypeError('the connection broke')),
  };
}

/** A hub of streams alone; `opened` waits for one of them. */
function streaming() {
  const streams = [];
  const waiting = [];
  const hub = new Client({url, patienceMs: 0, fetch: async (at, init) => {
    const stream = {...streamed(init), actors: new URL(at).searchParams.get('actors')};
    streams.push(stream);
    waiting.splice(0).forEach(wake => wake());
    return stream.answer;
  }});
  const opened = async at => {
    while (streams.length <= at) await new Promise(wake => { waiting.push(wake); });
    return streams[at];
  };
  return {hub, opened};
}

/** Events of the chat `c` in the stream of its workspace. */
const events = (...ids) => ids.map(id => `id: 7\nevent: chat_event\ndata: {"chat_id":"c","id":${id},"event":"chunk","data":{}}\n\n`).join('');
const begins = after => `${OPENING}id: 7\nevent: chat_event\ndata: {"chat_id":"c","id":${after},"event":"cursor"}\n\n`;
async function ids(reader, count) {
  const read = [];
  while (read.length < count) read.push((await reader.next()).value.id);
  return read;
}

test('the id of a block counts when the block has ended', () => {
  const parser = new Parser();
  assert.deepEqual([parser.push('id: 1\ndata: a\n\nid: 2\ndata: b').map(({id}) => id), parser.lastId], [['1'], '1']);
  assert.deepEqual([parser.push('\n\nid: 3\n\n').map(({id}) => id), parser.lastId], [['2'], '3']);
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
  const early = stream.chat('c', {after: 0});
  const first = ids(early, 1);
  const one = await opened(0);
  one.send(begins(0) + events(1));
  assert.deepEqual(await first, [1]);
  const late = stream.chat('c', {after: 0});
  const read = ids(late, 3);
  one.send(events(2));
  assert.deepEqual(await ids(early, 1), [2]);
  const two = await opened(1);
  assert.equal(two.actors, 'chat:c:0');
  two.send(begins(0) + events(1, 2, 3));
  assert.deepEqual([await read, await ids(early, 1)], [[1, 2, 3], [3]]);
  await Promise.all([early.return(), late.return()]);
});

test('a reader misses nothing when another one comes that has no place yet', async () => {
  const {hub, opened} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const early = stream.chat('c', {after: 10});
  const first = ids(early, 1);
  (await opened(0)).send(begins(10) + events(11));
  assert.deepEqual(await first, [11]);
  const late = stream.chat('c');
  const read = ids(late, 1);
  const two = await opened(1);
  assert.equal(two.actors, 'chat:c');
  // While nothing was open the chat came as far as 15.
  two.send(begins(15) + events(16));
  const three = await opened(2);
  assert.equal(three.actors, 'chat:c:11');
  three.send(begins(11) + events(12, 13, 14, 15, 16));
  assert.deepEqual([await read, await ids(early, 5)], [[16], [12, 13, 14, 15, 16]]);
  await Promise.all([early.return(), late.return()]);
});

test('a chat too many ends its own reader alone', async () => {
  const {hub} = streaming();
  const stream = new WorkspaceStream(hub, 'w');
  const leaving = new AbortController();
  const all = Array.from({length: 32}, (_, at) => stream.chat(`c${at}`, {signal: leaving.signal}).next());
  await assert.rejects(stream.chat('more').next(), RangeError);
  all.push(stream.chat('c0', {signal: leaving.signal}).next());
  leaving.abort();
  assert.ok((await Promise.all(all)).every(({done}) => done));
});

test('a call is looked for until the hub answers, and a result that cannot be sent is told as a failure', async () => {
  const leaving = new AbortController();
  const [told, answers] = [[], []];
  let looks = 0;
  const waiting = {event: 'call_handed_out', data: {call_id: 'k', tool: 'code__count', args: {}, repeatable: false}};
  const json = (body, status = 200) => new Response(JSON.stringify(body), {status});
  const refusal = code => ({error: {code, message: 'no'}});
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
