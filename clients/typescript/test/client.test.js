import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {Client, HubError, ticketUrl, Unreachable, upload, watchChat, watchWorkspace, WorkspaceStream} from 'buildscale';
import {startHub} from './hub.js';

const CHATS = '/api/v1/workspaces/{workspace_id}/chats';
const CHAT = `${CHATS}/{chat_id}`;
let server, hub, workspace;

before(async () => {
  server = await startHub();
  hub = new Client({url: server.url});
  workspace = (await hub.post('/api/v1/workspaces', {body: {name: 'test'}})).workspace_id;
});
after(() => server.stop());

const begin = async goal => (await hub.post(CHATS, {path: {workspace_id: workspace}, body: {goal}})).chat_id;

test('a chat is begun, watched to its end, and read', async () => {
  const chat = await begin('Show me what you can do');
  const texts = {};
  const names = new Set();
  for await (const {event, data} of watchChat(hub, {workspace, chat}, {after: 0})) {
    names.add(event);
    if (event === 'chunk') texts[data.message_id] = (texts[data.message_id] ?? '') + data.text;
    if (event === 'done') break;
  }
  for (const name of ['turn_started', 'thought', 'message', 'call', 'observation', 'file_updated', 'plan_step', 'usage', 'done']) assert.ok(names.has(name), name);
  const {messages, status} = await hub.get(CHAT, {path: {workspace_id: workspace, chat_id: chat}});
  const spoken = messages.filter(message => message.role === 'assistant' && message.content);
  assert.deepEqual(Object.values(texts), spoken.map(message => message.content));
  assert.equal(status, 'idle');
});

test('a stream goes on with its cursor after the hub was killed', async () => {
  const chat = await begin('count slowly');
  const ids = [];
  const attempts = [];
  const states = new Set();
  let killed;
  for await (const {id, event, data} of watchChat(hub, {workspace, chat}, {after: 0, onConnection: ({state}) => states.add(state)})) {
    ids.push(id);
    if (event === 'turn_started') attempts.push(data.attempt);
    if (event === 'chunk') killed ??= server.kill().then(server.restart);
    if (event === 'chunk' && attempts.length > 1) break;
  }
  await killed;
  assert.deepEqual(attempts, [1, 2]);
  assert.ok(ids.every((id, at) => at === 0 || id > ids[at - 1]), 'each event once, in order');
  assert.deepEqual([...states].sort(), ['connecting', 'open', 'waiting']);
  await hub.post(`${CHAT}/stop`, {path: {workspace_id: workspace, chat_id: chat}});
});

test('a refusal has its code, its hint and its status', async () => {
  const refusal = await hub.get(CHAT, {path: {workspace_id: workspace, chat_id: '01890000-0000-7000-8000-000000000000'}}).then(() => undefined, error => error);
  assert.ok(refusal instanceof HubError);
  assert.deepEqual([refusal.code, refusal.status, refusal.isPassing], ['NOT_FOUND', 404, false]);
  assert.ok(refusal.requestId);
});

test('a stream of something that is gone ends with the refusal', async () => {
  const gone = watchChat(hub, {workspace, chat: '01890000-0000-7000-8000-000000000000'});
  await assert.rejects(gone.next(), {code: 'NOT_FOUND'});
});

test('a stream of a chat that is deleted ends after its last event', async () => {
  const stream = new WorkspaceStream(hub, workspace);
  for (const watched of [chat => watchChat(hub, {workspace, chat}, {after: 0}), chat => stream.chat(chat, {after: 0})]) {
    const chat = await begin('count slowly');
    const seen = [];
    const reading = (async () => {
      for await (const {event, data} of watched(chat)) {
        if (event === 'chunk' && !seen.includes('chunk')) await hub.delete(CHAT, {path: {workspace_id: workspace, chat_id: chat}});
        seen.push(event === 'stopped' ? `stopped: ${data.reason}` : event);
      }
    })();
    await assert.rejects(reading, {code: 'NOT_FOUND'});
    assert.equal(seen.at(-1), 'stopped: deleted');
  }
});

test('a parameter that leads to another route is refused', async () => {
  await assert.rejects(hub.get(CHATS, {path: {workspace_id: '..'}}), /is no workspace_id/);
  await assert.rejects(watchChat(hub, {workspace, chat: '..'}).next(), /is no chat/);
});

test('a hub that is not there is unreachable', async () => {
  const nowhere = new Client({url: 'http://127.0.0.1:9', patienceMs: 0});
  await assert.rejects(nowhere.get('/health'), error => error instanceof Unreachable);
});

test('a request that may be sent twice waits for a hub that starts', async () => {
  await server.kill();
  const asked = hub.post('/api/v1/workspaces', {body: {name: 'patient'}});
  await server.restart();
  assert.equal((await asked).name, 'patient');
});

test('one key gives one answer', async () => {
  const make = () => hub.post('/api/v1/workspaces', {body: {name: 'once'}, idempotencyKey: 'one-key'});
  assert.deepEqual(await make(), await make());
});

test('a list is read page by page', async () => {
  const names = [];
  for await (const one of hub.all('/api/v1/workspaces', {query: {limit: 1}})) names.push(one.name);
  assert.ok(names.length >= 2 && names.includes('test'), names.join());
});

test('contents go as they are, and a stale version is refused', async () => {
  const at = {path: {workspace_id: workspace}, query: {path: '/projects/a b.bin'}};
  const bytes = new Uint8Array([0, 255, 10, 13]);
  const made = await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {...at, body: bytes});
  const read = await hub.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', at);
  assert.deepEqual(new Uint8Array(await read.arrayBuffer()), bytes);
  const stale = hub.put('/api/v1/workspaces/{workspace_id}/files/{file_id}', {
    path: {workspace_id: workspace, file_id: made.file_id}, body: {content: 'x'}, headers: {'if-match': '"7"'},
  });
  await assert.rejects(stale, {code: 'STALE_VERSION', status: 412});
});

test('an upload tells its progress, and writes one version', async () => {
  const long = new Uint8Array(1_000_003).map((_, at) => at * 7);
  for (const [v, content] of [[1, new Blob([long])], [2, 'short'], [3, '']]) {
    const told = [];
    const made = await upload(hub, {workspace, path: '/data/long.bin'}, content, {onProgress: (sent, size) => told.push([sent, size])});
    const read = await hub.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: {workspace_id: workspace}, query: {path: '/data/long.bin'}});
    const size = content.size ?? content.length;
    assert.deepEqual([made.v, Buffer.compare(Buffer.from(await read.arrayBuffer()), Buffer.from(v === 1 ? long : content))], [v, 0]);
    assert.deepEqual(told.at(-1), [size, size]);
    if (v === 1) assert.ok(told.length > 3 && told.every(([sent], at) => at === 0 || sent >= told[at - 1][0]), JSON.stringify(told));
  }
});

test('an upload ends when its signal aborts', async () => {
  const controller = new AbortController();
  const going = upload(hub, {workspace, path: '/data/left.bin'}, new Uint8Array(3_000_000), {signal: controller.signal, onProgress: () => controller.abort(new Error('left'))});
  await assert.rejects(going, /left/);
  await assert.rejects(hub.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: {workspace_id: workspace}, query: {path: '/data/left.bin'}}), {code: 'NOT_FOUND'});
});

test('a long upload goes on where an earlier one ended', async () => {
  const long = new Blob([new Uint8Array(17_000_000).map((_, at) => at * 11)]);
  const controller = new AbortController();
  const leave = sent => sent > 16_777_216 && controller.abort(new Error('left'));
  await assert.rejects(upload(hub, {workspace, path: '/data/parts.bin'}, long, {signal: controller.signal, onProgress: leave}), /left/);
  const told = [];
  const made = await upload(hub, {workspace, path: '/data/parts.bin'}, long, {onProgress: sent => told.push(sent)});
  assert.deepEqual([made.v, made.size, told[0], told.at(-1)], [1, long.size, 16_777_216, long.size]);
});

test('the changes of a workspace are told', async () => {
  const controller = new AbortController();
  const changes = watchWorkspace(hub, workspace, {signal: controller.signal, onConnection: ({state}) => {
    if (state === 'open') void hub.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: {workspace_id: workspace}, query: {path: '/projects/told.md'}, body: {content: 'told'}});
  }});
  for await (const {event, data} of changes) {
    if (event === 'file_updated' && data.path === '/projects/told.md') break;
  }
});

test('one connection has the changes of a workspace and the events of its chats, also after the hub was killed', async () => {
  const opened = [];
  const counting = new Client({url: server.url, fetch: (url, init) => {
    if (String(url).includes('/events')) opened.push(new URL(url).searchParams.get('actors'));
    return fetch(url, init);
  }});
  const stream = new WorkspaceStream(counting, workspace);
  const leaving = new AbortController();
  const changes = [];
  const watching = (async () => { for await (const {event} of stream.changes({signal: leaving.signal})) changes.push(event); })();
  const [asked, counted] = [await begin('Ask me something'), await begin('count slowly')];
  const gone = assert.rejects(stream.chat('01890000-0000-7000-8000-000000000000').next(), {code: 'NOT_FOUND'});
  const question = (async () => { for await (const {event} of stream.chat(asked, {after: 0})) if (event === 'question') return; })();
  const ids = [];
  let killed;
  for await (const {id, event, data} of stream.chat(counted, {after: 0, signal: leaving.signal})) {
    ids.push(id);
    if (event === 'chunk') killed ??= server.kill().then(server.restart);
    if (event === 'turn_started' && data.attempt > 1) break;
  }
  await Promise.all([killed, question, gone]);
  assert.ok(ids.every((id, at) => at === 0 || id > ids[at - 1]), 'each event once, in order');
  await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: {workspace_id: workspace}, query: {path: '/projects/line.md'}, body: {content: 'told'}});
  while (!changes.includes('file_updated')) await new Promise(resolve => setImmediate(resolve));
  // A reader that comes later gets the events from before, too.
  for await (const {event} of stream.chat(asked, {after: 0})) {
    if (event === 'turn_started') break;
  }
  leaving.abort();
  await watching;
  assert.ok(opened.some(actors => actors?.includes(`chat:${asked}`) && actors.includes(`chat:${counted}`)), opened.join(' '));
  await hub.post(`${CHAT}/stop`, {path: {workspace_id: workspace, chat_id: counted}});
});

test('a ticket opens a stream without the token', async () => {
  const guarded = await startHub({args: ['--auth-token', 'secret-token-of-the-test']});
  try {
    const owner = new Client({url: guarded.url, token: () => 'secret-token-of-the-test'});
    await assert.rejects(new Client({url: guarded.url}).get('/api/v1/workspaces'), {code: 'UNAUTHORIZED'});
    const {workspace_id: own} = await owner.post('/api/v1/workspaces', {body: {name: 'guarded'}});
    const {chat_id: chat} = await owner.post(CHATS, {path: {workspace_id: own}, body: {goal: 'ask me'}});
    assert.match(await ticketUrl(owner, {workspace: own, chat}, 0), /&after=0$/);
    const opened = await fetch(await ticketUrl(owner, {workspace: own, chat}), {headers: {accept: 'text/event-stream'}});
    assert.equal(opened.status, 200);
    await opened.body.cancel();
    for await (const {event} of watchChat(owner, {workspace: own, chat}, {after: 0, ticket: true})) if (event === 'question') break;
  } finally {
    await guarded.stop();
  }
});
