// The hooks for React in a document: against a hub that says what the test wants, and against a real one.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {draw, fake, main, mount, page, shown, until} from './rendering.js';
import {Client} from 'buildscale';
import {useChat, useTask} from 'buildscale/react';
import {Activity, createElement, StrictMode} from 'react';
import {createRoot, hydrateRoot} from 'react-dom/client';
import {renderToString} from 'react-dom/server';
import {startHub} from './hub.js';
import {CHAT, chatOf, json, refusal} from './streaming.js';

test('a chat is rendered on a server without a request, and its document is taken over as it is', async () => {
  const hub = fake({messages: [{id: 'm', seq: 1, role: 'user', content: 'hello'}], last_seq: 1});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  main.innerHTML = renderToString(element);
  assert.deepEqual([seen.view.status, seen.view.messages, hub.looks], ['loading', [], 0]);
  const faults = [];
  page.root = hydrateRoot(main, element, {onRecoverableError: error => faults.push(error)});
  await until(() => main.textContent === 'hello');
  assert.deepEqual([seen.view.status, faults], ['idle', []]);
});

test('a component that is mounted twice reads once, and one that is gone holds no connection', async () => {
  const hub = fake();
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(createElement(StrictMode, undefined, element));
  await until(() => seen.view?.status === 'idle' && hub.streams.length === 1);
  assert.deepEqual([hub.looks, hub.streams.length, hub.streams[0].actors], [1, 1, `chat:${CHAT}:0`]);
  page.root.unmount();
  await hub.streams[0].left;
});

test('a component that was hidden goes on with the events that it lacks', async () => {
  const hub = fake();
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  const show = mode => page.root.render(createElement(Activity, {mode}, element));
  page.root = createRoot(main);
  show('visible');
  await until(() => hub.streams.length === 1);
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  hub.tell('chunk', {message_id: 'a', text: 'one '});
  await until(() => seen.view.partial === 'one ');
  hub.tell('chunk', {message_id: 'a', text: 'two '});
  await new Promise(setImmediate);
  show('hidden');
  await hub.streams[0].left;
  show('visible');
  await until(() => hub.streams.length === 2);
  assert.deepEqual([hub.looks, hub.streams[1].actors], [1, `chat:${CHAT}:3`]);
  hub.tell('chunk', {message_id: 'a', text: 'three'});
  await until(() => seen.view.partial === 'one two three');
});

test('pieces of an answer are rendered once per frame', async () => {
  const hub = fake();
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1);
  hub.tell('message', {message_id: 'u', role: 'user', content: 'count'});
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  await until(() => seen.view.status === 'running');
  const before = seen.renders;
  for (let at = 1; at <= 50; at++) {
    hub.tell('chunk', {message_id: 'a', text: `${at} `});
    await new Promise(setImmediate);
  }
  assert.ok(seen.renders <= before + 1, `${seen.renders - before} times before a frame`);
  draw();
  await until(() => seen.view.partial.endsWith('50 '), false);
  assert.ok(seen.renders <= before + 2, `${seen.renders - before} times in one frame`);
  assert.deepEqual(seen.view.messages.map(({kind, complete}) => [kind, complete]), [['user', undefined], ['assistant', false]]);
  hub.tell('message', {message_id: 'a', role: 'assistant', content: 'counted'});
  hub.tell('done', {turn_id: 't', stop_reason: 'end_turn', message: 'counted'});
  await until(() => seen.view.status === 'idle');
  assert.deepEqual([seen.view.partial, main.textContent], ['', 'countcounted']);
});

test('requests to people are open until they are decided or their turn ends, and commands reach the hub', async () => {
  const asks = id => ({permission_id: id, call_id: `c${id}`, tool: 'exec', args: {}, category: 'x', reason: 'y', expires_at: '2030-01-01T00:00:00Z'});
  const hub = fake({turn_id: 't', turn_seq: 1, waiting_for: [{event: 'permission_required', data: asks('one')}]});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1);
  assert.deepEqual([seen.view.status, seen.view.permissions.map(({id}) => id)], ['permission', ['p:one']]);
  await seen.view.permissions[0].answer('declined', {reason: 'no'});
  hub.tell('permission_resolved', {permission_id: 'one', outcome: 'declined', by: 'me'});
  hub.tell('question', {question_id: 'q', call_id: 'cq', questions: [{name: 'a', question: 'A?'}], expires_at: '2030-01-01T00:00:00Z'});
  await until(() => seen.view.status === 'question');
  await seen.view.questions[0].answer({a: 1});
  hub.tell('permission_required', asks('two'));
  await until(() => seen.view.permissions.length === 1);
  await seen.view.stop();
  hub.tell('stopped', {turn_id: 't', reason: 'user_cancelled', partial_response: ''});
  await until(() => seen.view.status === 'idle');
  await seen.view.send('again', {on_busy: 'queue'});
  hub.tell('turn_started', {turn_id: 'u', attempt: 1});
  await until(() => seen.view.status === 'running');
  assert.deepEqual([seen.view.permissions, seen.view.questions], [[], []]);
  const at = `chats/${CHAT}`;
  assert.deepEqual(hub.asked, [
    [`${at}/permissions/one`, {reason: 'no', outcome: 'declined'}], [`${at}/answers/q`, {answers: {a: 1}}], [`${at}/stop`, undefined],
    [at, {on_busy: 'queue', content: 'again'}],
  ]);
  hub.tell('error', {code: 'PROVIDER_ERROR', message: 'the model refuses'});
  hub.tell('done', {turn_id: 'u', stop_reason: 'error', message: ''});
  await until(() => seen.view.status === 'failed');
  assert.deepEqual([seen.view.failure, seen.view.error], ['the model refuses', undefined]);
});

test('a decision is on the request that was shown', async () => {
  const asked = {permission_id: 'one', call_id: 'c', tool: 'exec', args: {}, category: 'x', reason: 'y', digest: 'd1', options: [{option_id: 'o', name: 'Yes', kind: 'allow_once'}], expires_at: '2030-01-01T00:00:00Z'};
  const hub = fake({turn_id: 't', turn_seq: 1, waiting_for: [{event: 'permission_required', data: asked}]});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => seen.view?.status === 'permission');
  const [{options, answer}] = seen.view.permissions;
  await answer('approved', {option_id: options[0].option_id});
  assert.deepEqual(hub.asked, [[`chats/${CHAT}/permissions/one`, {digest: 'd1', option_id: 'o', outcome: 'approved'}]]);
});

test('a chat runs from its message on, unless the hub refuses it', async () => {
  const hub = fake();
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1 && seen.view.status === 'idle');
  await seen.view.send('hello');
  await until(() => seen.view.status === 'running');
  hub.tell('message', {message_id: 'u', role: 'user', content: 'hello'});
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  hub.tell('done', {turn_id: 't', stop_reason: 'end_turn', message: ''});
  await until(() => seen.view.status === 'idle');
  let refuse;
  hub.refused = new Promise(resolve => { refuse = resolve; });
  const refused = assert.rejects(seen.view.send('again'), {code: 'CONFLICT'});
  await until(() => seen.view.status === 'running');
  refuse(true);
  await refused;
  await until(() => seen.view.status === 'idle');
});

test('a chat that is paused goes on when a person wants it', async () => {
  const hub = fake({turn_id: 't', turn_seq: 1, paused_reason: 'the disk is full'});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => seen.view?.status === 'paused');
  await seen.view.resume({drop: true});
  assert.deepEqual(hub.asked, [[`chats/${CHAT}/resume`, {drop: true}]]);
});

test('a chat that cannot be reached says so, and is read again until it answers', async () => {
  const hub = fake();
  hub.away = 2;
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => seen.view?.error?.name === 'Unreachable');
  assert.equal(seen.view.status, 'failed');
  await until(() => seen.view.status === 'idle');
  assert.deepEqual([seen.view.error, hub.looks], [undefined, 3]);
});

test('an event that is on its way when a component is hidden is shown once', async () => {
  const hub = fake();
  const readers = [];
  const stream = {workspace: 'w', async *chat(_, {after, signal}) {
    const reader = {after, signal};
    readers.push(reader);
    for (;;) yield await new Promise(resolve => { reader.send = resolve; });
  }};
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT, stream});
  const show = mode => page.root.render(createElement(Activity, {mode}, element));
  page.root = createRoot(main);
  show('visible');
  await until(() => readers[0]?.send);
  readers[0].send({id: 1, event: 'turn_started', data: {turn_id: 't', attempt: 1}});
  await until(() => seen.view.status === 'running');
  show('hidden');
  await until(() => readers[0].signal.aborted);
  const chunk = {id: 2, event: 'chunk', data: {message_id: 'a', text: 'once'}};
  readers[0].send(chunk);
  await new Promise(setImmediate);
  show('visible');
  await until(() => readers[1]?.send);
  assert.equal(readers[1].after, 1);
  readers[1].send(chunk);
  await until(() => seen.view.partial !== '');
  assert.equal(seen.view.partial, 'once');
});

test('an older page that comes after the history was read again is no part of it', async () => {
  const hub = fake({messages: [{id: 'm', seq: 9, role: 'user', content: 'new'}], next_before: 9});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1 && seen.view.loadOlder);
  let give;
  hub.page = () => new Promise(resolve => { give = () => resolve(json({messages: [{id: 'o', seq: 1, role: 'user', content: 'old'}]})); });
  const reading = seen.view.loadOlder();
  await until(() => give);
  hub.tell('reset', {reason: 'cursor_too_old', after: 0});
  await until(() => hub.looks === 3 && seen.view.loadOlder);
  give();
  await reading;
  assert.deepEqual([seen.view.messages.map(({text}) => text), typeof seen.view.loadOlder], [['new'], 'function']);
  const again = seen.view.loadOlder();
  await until(() => hub.looks === 4);
  give();
  await again;
  await until(() => seen.view.messages.length === 2);
  assert.deepEqual([main.textContent, seen.view.loadOlder], ['oldnew', undefined]);
});

test('another chat is shown without a word of the one before', async () => {
  const hub = fake({messages: [{id: 'm', seq: 1, role: 'user', content: 'hello'}], last_seq: 1});
  const seen = [];
  const Shown = ({chat}) => {
    const {status, messages} = useChat({client: hub.client, workspace: 'w', chat});
    seen.push([chat, status, messages.length]);
    return null;
  };
  page.root = createRoot(main);
  page.root.render(createElement(Shown, {chat: CHAT}));
  await until(() => hub.streams.length === 1);
  page.root.render(createElement(Shown, {chat: chatOf(2)}));
  await until(() => hub.streams.length === 2);
  // The hook has React render a component whose chat is another one at once again.
  const ofOther = seen.filter(([chat]) => chat === chatOf(2)).map(String);
  assert.deepEqual([...new Set(ofOther)], [`${chatOf(2)},loading,0`, `${chatOf(2)},idle,1`]);
  assert.equal(hub.streams[1].actors, `chat:${chatOf(2)}:0`);
  await hub.streams[0].left;
});

test('a component that comes back follows without the error of before', async () => {
  const hub = fake();
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  const show = mode => page.root.render(createElement(Activity, {mode}, element));
  page.root = createRoot(main);
  show('visible');
  await until(() => hub.streams.length === 1);
  hub.refusal = json(refusal('UNAUTHORIZED'), 401);
  hub.streams[0].end();
  await until(() => seen.view.error?.code === 'UNAUTHORIZED');
  hub.refusal = undefined;
  show('hidden');
  await new Promise(setImmediate);
  show('visible');
  await until(() => hub.streams.length === 2 && seen.view.status === 'idle');
  assert.equal(seen.view.error, undefined);
});

test('a chat that is refused tells why, and is read again when the person wants it', async () => {
  const hub = fake();
  hub.gone = true;
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => seen.view?.status === 'failed');
  assert.equal(seen.view.error.code, 'NOT_FOUND');
  hub.gone = false;
  seen.view.retry();
  await until(() => seen.view.status === 'idle');
  assert.equal(seen.view.error, undefined);
});

test('a chat whose stream is refused keeps what it shows, and goes on from there', async () => {
  const hub = fake({messages: [{id: 'm', seq: 1, role: 'user', content: 'hello'}], last_seq: 1});
  const {seen, element} = shown(useChat, {client: hub.client, workspace: 'w', chat: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1);
  hub.tell('turn_started', {turn_id: 't', attempt: 1});
  hub.tell('chunk', {message_id: 'a', text: 'half '});
  await until(() => seen.view.partial === 'half ');
  hub.refusal = json(refusal('UNAUTHORIZED'), 401);
  hub.streams[0].end();
  await until(() => seen.view.error?.code === 'UNAUTHORIZED');
  assert.deepEqual([seen.view.status, main.textContent], ['failed', 'hellohalf ']);
  hub.refusal = undefined;
  seen.view.retry();
  await until(() => hub.streams.length === 2 && seen.view.status === 'running');
  assert.deepEqual([seen.view.error, hub.looks, hub.streams[1].actors], [undefined, 1, `chat:${CHAT}:2`]);
  hub.tell('chunk', {message_id: 'a', text: 'whole'});
  await until(() => seen.view.partial === 'half whole');
});

test('a task is the states of its nodes, and one that has ended holds no connection', async () => {
  const hub = fake();
  const {seen, element} = shown(useTask, {client: hub.client, workspace: 'w', task: CHAT});
  mount(createElement(StrictMode, undefined, element));
  await until(() => hub.streams.length === 1);
  assert.deepEqual([seen.view.status, hub.streams[0].actors], ['loading', `task:${CHAT}:0`]);
  const tell = (event, data) => hub.tell(event, data, 'task');
  tell('task_started', {input: {a: 1}});
  tell('node_started', {node: 'write', attempt: 1});
  await until(() => seen.view.status === 'running');
  assert.deepEqual([seen.view.input, [...seen.view.nodes]], [{a: 1}, [['write', {attempt: 1, status: 'running'}]]]);
  tell('question', {node: 'write', questions: [{name: 'a', question: 'A?'}]});
  await until(() => seen.view.status === 'question');
  await seen.view.questions[0].answer({a: 2});
  tell('answered', {node: 'write'});
  tell('node_finished', {node: 'write', attempt: 1, status: 'success', output: 3, metrics: {duration_ms: 5}});
  tell('done', {status: 'success', output: 3});
  await until(() => seen.view.status === 'success');
  assert.deepEqual([seen.view.output, seen.view.nodes.get('write').status, seen.view.questions, seen.view.error], [3, 'done', [], undefined]);
  assert.deepEqual(hub.asked, [[`tasks/${CHAT}/answers/write`, {answers: {a: 2}}]]);
  await hub.streams[0].left;
});

test('a task asks for the agent of a node, waits for a person when it is put aside, and ends in a merge above it', async () => {
  const hub = fake();
  const {seen, element} = shown(useTask, {client: hub.client, workspace: 'w', task: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1);
  const tell = (event, data) => hub.tell(event, data, 'task');
  const states = [];
  const told = async (event, data, status) => {
    tell(event, data);
    await until(() => seen.view.status === status);
    states.push(seen.view.nodes.get('write')?.status);
  };
  await told('node_started', {node: 'write', attempt: 1}, 'running');
  await told('agent_waits', {node: 'write', chat_id: 'c', asked: {event: 'question', data: {}}}, 'question');
  await told('agent_waits', {node: 'write', chat_id: 'c'}, 'running');
  await told('error', {code: 'PAUSED', message: 'the disk is full'}, 'paused');
  assert.equal(seen.view.parked, 'the disk is full');
  await seen.view.resume({drop: true});
  await told('node_started', {node: 'write', attempt: 2}, 'running');
  tell('node_finished', {node: 'write', attempt: 2, status: 'failure', error: {code: 'INTERNAL', message: 'no'}, output: null, metrics: {duration_ms: 5}});
  tell('agent_waits', {node: 'write', chat_id: 'c'});
  await told('went_up', {node: 'gather', task_id: 't'}, 'merged');
  assert.deepEqual([states, seen.view.parked], [['running', 'asks', 'running', 'running', 'running', 'failed'], undefined]);
  assert.deepEqual(hub.asked, [[`tasks/${CHAT}/resume`, {drop: true}]]);
  await hub.streams[0].left;
});

test('a task that failed tells why', async () => {
  const hub = fake();
  const {seen, element} = shown(useTask, {client: hub.client, workspace: 'w', task: CHAT});
  mount(element);
  await until(() => hub.streams.length === 1);
  hub.tell('done', {status: 'failure', output: null, error: {code: 'INTERNAL', message: 'no reason'}}, 'task');
  await until(() => seen.view.status === 'failed');
  assert.deepEqual([seen.view.failure, seen.view.error], ['no reason', undefined]);
});

test('a turn of a real hub is followed to its end, with a permission', async () => {
  const server = await startHub();
  try {
    const client = new Client({url: server.url});
    const {workspace_id: workspace} = await client.post('/api/v1/workspaces', {body: {name: 'react'}});
    const path = {workspace_id: workspace};
    const {chat_id: chat} = await client.post('/api/v1/workspaces/{workspace_id}/chats', {path, body: {goal: 'Show me what you can do'}});
    const {seen, element} = shown(useChat, {client, workspace, chat});
    mount(createElement(StrictMode, undefined, element));
    const states = new Set();
    const decided = new Set();
    await until(() => {
      if (seen.view) states.add(seen.view.status);
      for (const {id, answer} of seen.view?.permissions ?? []) if (!decided.has(id)) decided.add(id) && void answer('approved');
      return states.has('running') && seen.view.status === 'idle';
    });
    assert.match(seen.view.messages.at(-1).text, /Done\. This is what happened/);
    await seen.view.send('Ask me something');
    await until(() => seen.view.status === 'question');
    await seen.view.stop();
    await until(() => seen.view.status === 'idle');
  } finally {
    page.root.unmount();
    await server.stop();
  }
});
