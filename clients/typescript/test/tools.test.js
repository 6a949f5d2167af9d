// Functions of a program that agents call, against a real hub with a scripted model.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {Client, serveTools, watchChat} from 'buildscale';
import {startHub} from './hub.js';

const CHATS = '/api/v1/workspaces/{workspace_id}/chats';
const times = {type: 'object', properties: {times: {type: 'integer'}}, required: ['times'], additionalProperties: false};
const at = {type: 'object', properties: {at: {type: 'string'}}};
let server, hub, workspace;
const programs = [];

before(async () => {
  const script = fileURLToPath(new URL('tools.yaml', import.meta.url));
  server = await startHub({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
  hub = new Client({url: server.url});
  workspace = (await hub.post('/api/v1/workspaces', {body: {name: 'tools'}})).workspace_id;
});
after(async () => {
  for (const program of programs) program.abort();
  await server.stop();
});

function deferred() {
  let resolve;
  const promise = new Promise(done => { resolve = done; });
  return {promise, resolve};
}

/** Starts a program with these functions. */
function program(tools) {
  const controller = new AbortController();
  programs.push(controller);
  const {promise, resolve} = deferred();
  const ended = serveTools(hub, workspace, tools, {signal: controller.signal, onConnection: ({state}) => state === 'open' && resolve()});
  return {open: Promise.race([promise, ended]), end: async () => { controller.abort(); await ended; }};
}

const begin = async goal => (await hub.post(CHATS, {path: {workspace_id: workspace}, body: {goal}})).chat_id;
/** Allows each call that is asked about, and gives the last words; `until` ends it at an event. */
async function said(chat, until = 'done') {
  for await (const {event, data} of watchChat(hub, {workspace, chat}, {after: 0})) {
    if (event === 'permission_required') {
      const path = {workspace_id: workspace, chat_id: chat, permission_id: data.permission_id};
      await hub.post(`${CHATS}/{chat_id}/permissions/{permission_id}`, {path, body: {outcome: 'approved', always: Boolean(data.always)}}).catch(() => {});
    }
    if (event === until) return until === 'done' ? data.message : data;
  }
}

test('agents call functions of a program, one call after the other', async () => {
  const serving = program({look: {description: 'Looks at something.', parameters: at, effects: 'read', run: ({at}) => `a ${at}`}});
  await serving.open;
  assert.equal(await said(await begin('look around')), 'Seen: a moon, a sun.');
  await serving.end();
});

test('a call waits for a program that is away, and of two programs one runs it, once', async () => {
  const rung = [];
  const ring = name => ({ring: {description: 'Rings the bell.', parameters: times, timeoutS: 600, run: ({times}) => { rung.push(name); return {times}; }}});
  const first = program(ring('first'));
  await first.open;
  await first.end();
  const chat = await begin('ring it');
  const handed = await said(chat, 'call_handed_out');
  assert.deepEqual([handed.tool, handed.args, handed.repeatable], ['code__ring', {times: 2}, false]);
  const both = [program(ring('second')), program(ring('third'))];
  assert.equal(await said(chat), '{"times":2}');
  assert.equal(rung.length, 1, rung.join());
  await Promise.all(both.map(one => one.end()));
});

test('a hub that is killed meanwhile loses no call and no answer', async () => {
  const {promise: asked, resolve: ask} = deferred();
  const {promise: back, resolve: restart} = deferred();
  const serving = program({ring: {description: 'Rings the bell.', parameters: times, run: async () => { ask(); await back; return 'rung'; }}});
  await serving.open;
  const chat = await begin('ring it now');
  const words = said(chat);
  await asked;
  await server.kill();
  await server.restart();
  restart();
  assert.equal(await words, 'rung');
  await serving.end();
});

test('the agent reads what a function throws, and arguments that do not fit reach no program', async () => {
  const serving = program({
    break: {description: 'Breaks.', run: () => { throw new Error('the spring is loose'); }},
    ring: {description: 'Rings the bell.', parameters: times, run: () => assert.fail('it is not called')},
  });
  await serving.open;
  assert.equal(await said(await begin('break it')), 'It broke: the spring is loose');
  assert.match(await said(await begin('wrong arguments')), /INVALID_ARGUMENT.*times/s);
  await serving.end();
});

test('a call that no program answers fails when its time is up', async () => {
  const serving = program({break: {description: 'Breaks.', timeoutS: 1, effects: 'read', run: () => new Promise(() => {})}});
  await serving.open;
  assert.match(await said(await begin('break it')), /It broke: TIMEOUT: no program answered in time/);
  await serving.end();
});
