// Each state of each page, in both themes and three widths, against the pictures in looks/. BLESS=1 makes them anew.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {watchTask} from '../../../../clients/typescript/dist/index.js';
import {begin, PATIENCE} from './browser.mjs';
import {compared, contextFor, LOOKS, settle} from './looks.mjs';

let world, context, judge;
const made = {};
before(async () => {
  world = await begin();
  const {api, path} = world;
  const write = (to, content) => api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path, query: {path: to}, body: {content}});
  made.chat = await world.chat('Show me what you can do');
  made.question = await world.chat('Ask me something');
  made.permission = await world.chat('Run a command');
  await write('/projects/notes.md', '# Notes\n\nA list:\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst a = 1;\n```\n');
  await write('/projects/code.py', 'def one():\n    return 1\n');
  await write('/projects/code.py', 'def one():\n    return 2\n\n\ndef two():\n    return 2\n');
  await api.post('/api/v1/workspaces/{workspace_id}/schedules', {path, body: {name: 'Brief', action: {kind: 'chat', goal: 'Sum up the day'}, rrule: 'FREQ=DAILY', begins: '2090-01-01T08:00', time_zone: 'UTC'}});
  // Of a chat whose turn does not end, so that nothing is posted.
  const {webhook} = await api.post('/api/v1/workspaces/{workspace_id}/webhooks', {path, body: {name: 'Team channel', url: 'https://example.com/hooks', events: ['turn.ended', 'plan.submitted'], chat_id: made.question}});
  made.webhook = webhook.webhook_id;
  await write('/system/flows/short/workflow.yaml', "version: 1\ndescription: Says something.\nnodes:\n  - {id: begin, kind: deterministic, role: start, context: none, op: {expr: input}}\n  - {id: say, kind: deterministic, role: linear, context: none, op: {expr: \"{'said': 'hello'}\"}}\n  - {id: end, kind: deterministic, role: exit, context: none}\nedges:\n  - {from: begin, to: say}\n  - {from: say, to: end}\n");
  const {task_id: task} = await api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...path, flow: 'short'}, body: {input: {}}});
  for await (const event of watchTask(api, {workspace: world.workspace, task}, {after: 0})) void event;
  made.task = task;
  context = await contextFor(world.browser);
  context.setDefaultTimeout(PATIENCE);
  judge = await (await world.browser.newContext()).newPage();
});
after(() => world.end());

const refusal = (status, code, message, hint) => route => route.fulfill({status, contentType: 'application/json', body: JSON.stringify({error: {code, message, hint, request_id: 'req-1'}})});
const heading = name => page => page.getByRole('heading', {name, exact: true}).first().waitFor();
const log = page => page.getByRole('log', {name: 'Conversation'});
/** An answer that streams, held in the middle of a word. */
const streaming = chat => {
  const block = (id, event, data) => `id: 1\nevent: chat_event\ndata: ${JSON.stringify({chat_id: chat, id, event, data})}\n\n`;
  const [turn, message] = ['01890000-0000-7000-8000-000000000001', '01890000-0000-7000-8000-000000000002'];
  const body = [
    block(900001, 'turn_started', {turn_id: turn, attempt: 1}), block(900002, 'message', {message_id: turn, role: 'user', content: 'Explain it'}),
    block(900003, 'thought', {message_id: message, text: 'They want an explanation. I look at the files first.'}), block(900004, 'chunk', {message_id: message, text: 'It works like this:\n\n1. A program sends a goal.\n2. The agent ans'}),
  ].join('');
  return route => route.fulfill({contentType: 'text/event-stream', body});
};
const AT = '/api/v1/workspaces';

/** name: its place, what is there when it is whole, what happens before, and what is another thing on each run. */
const STATES = {
  'sign-in': {ready: heading('Sign in'), routes: {[`**${AT}?*`]: refusal(401, 'UNAUTHORIZED', 'no token')}},
  workspaces: {at: () => '#/workspaces', ready: heading('Workspaces')},
  'chat-new': {place: 'chats', ready: heading('What should be done?')},
  'chat-done': {place: () => `chats/${made.chat}`, ready: page => log(page).getByText(/tokens read/).waitFor()},
  'chat-question': {place: () => `chats/${made.question}`, ready: page => page.getByRole('form', {name: 'The agent asks'}).waitFor()},
  'chat-permission': {place: () => `chats/${made.permission}`, ready: page => page.getByRole('button', {name: 'Allow once'}).waitFor()},
  'chat-streaming': {place: () => `chats/${made.chat}`, routes: () => ({'**/events*': streaming(made.chat)}), ready: page => log(page).getByText('The agent ans').waitFor()},
  'chat-gone': {place: 'chats/01890000-0000-7000-8000-000000000000', ready: heading('This chat is not there')},
  files: {place: 'files/projects', ready: page => page.locator('.entries').getByText('notes.md').waitFor()},
  'files-empty': {place: 'files/projects', routes: {[`**${AT}/*/files?path=*`]: route => route.fulfill({contentType: 'application/json', body: '{"entries":[]}'})}, ready: heading('This folder is empty')},
  'file-read': {place: 'files/projects/notes.md', ready: heading('Notes')},
  'file-edit': {place: 'files/projects/code.py', ready: page => page.locator('.cm-content').getByText('def two').waitFor()},
  'file-history': {place: 'files/projects/code.py?view=history', ready: page => page.getByRole('textbox', {name: /Differences of/}).getByText('def two').waitFor(), changing: ['.versions .faint']},
  trash: {place: 'files?view=trash', ready: heading('The trash is empty')},
  flows: {place: 'flows', ready: page => page.getByRole('link', {name: /plan_and_execute/}).waitFor(), changing: ['.page > h2 ~ *']},
  'flows-loading': {place: 'flows', routes: {[`**${AT}/*/flows`]: () => {}}, ready: page => page.getByText('Loading the flows').waitFor(), changing: ['.page > h2 ~ *']},
  flow: {place: 'flows/short', ready: page => page.locator('.node').nth(2).waitFor(), changing: ['.rows-list .grow']},
  'flow-run': {place: () => `flows/short/${made.task}`, ready: page => page.locator('.node.done').nth(2).waitFor(), changing: ['.crumbs h1', '.node .faint', '.timeline', '.inline-form']},
  sandbox: {place: 'sandbox', ready: page => page.getByRole('textbox', {name: 'Command'}).waitFor(), changing: ['.page-head .badge', '.page-head .button', '.lead']},
  schedules: {place: 'schedules', ready: page => page.getByText('Brief').waitFor()},
  webhooks: {place: 'webhooks', ready: page => page.getByText('Team channel').waitFor()},
  'webhook-new': {place: 'webhooks', ready: page => page.getByText('Team channel').waitFor().then(() => page.getByRole('button', {name: 'New webhook'}).click())},
  'webhook-deliveries': {place: () => `webhooks/${made.webhook}`, ready: page => page.getByText(/Nothing was sent yet|delivered|pending/).first().waitFor(), routes: {'**/deliveries?*': route => route.fulfill({contentType: 'application/json', body: JSON.stringify({deliveries: [
    {delivery_id: '1', webhook_id: '1', message_id: 'msg_1', type: 'turn.ended', timestamp: '2026-01-01T00:00:00Z', data: {}, status: 'delivered', attempts_made: 1, attempts: [{at: '2026-01-01T00:00:00Z', duration_ms: 12, status: 204}], created_at: '2026-01-01T00:00:00Z'},
    {delivery_id: '2', webhook_id: '1', message_id: 'msg_2', type: 'question.asked', timestamp: '2026-01-01T00:00:00Z', data: {}, status: 'failed', given_up: 'a day has passed', attempts_made: 9, attempts: [{at: '2026-01-01T00:00:00Z', duration_ms: 15_000, error: 'timed out'}], created_at: '2026-01-01T00:00:00Z'},
  ]})})}},
  people: {place: 'people', ready: heading('You work alone here')},
  usage: {place: 'usage', ready: page => page.getByText('Tokens read').waitFor(), changing: ['td', '.tile dd']},
  'usage-error': {place: 'usage', routes: {'**/usage?*': refusal(500, 'INTERNAL', 'something failed on the server', 'try again later')}, ready: page => page.getByRole('alert').getByText('INTERNAL').waitFor()},
  'usage-no-right': {place: 'usage', routes: {'**/usage?*': refusal(403, 'FORBIDDEN', 'this needs the right to read, which a guest does not have', 'ask an admin of the workspace')}, ready: page => page.getByRole('alert').getByText('FORBIDDEN').waitFor()},
  health: {place: 'health', ready: page => page.getByText(/Hub, version/).waitFor(), changing: ['.rows-list .grow', '.rows-list .badge', '.tile dd']},
  palette: {place: 'flows', ready: async page => { await heading('Flows')(page); await page.keyboard.press('Control+k'); await page.getByRole('dialog').getByRole('option').first().waitFor(); }},
  offline: {place: 'flows', ready: async page => { await heading('Flows')(page); await page.context().setOffline(true); await page.getByText('You are offline').waitFor(); }, end: page => page.context().setOffline(false)},
  reconnecting: {place: 'flows', routes: {'**/events*': route => route.abort()}, ready: async page => { await heading('Flows')(page); await page.getByText('Reconnecting').waitFor(); }},
};

for (const [name, state] of Object.entries(STATES)) {
  test(`the state looks as it did: ${name}`, async () => {
    const page = await context.newPage();
    const routes = typeof state.routes === 'function' ? state.routes() : state.routes ?? {};
    for (const [url, act] of Object.entries(routes)) await page.route(url, act);
    const place = typeof state.place === 'function' ? state.place() : state.place;
    const faults = [];
    try {
      await page.goto(`${world.hub.url}/${state.at?.() ?? (place === undefined ? '' : `#/w/${world.workspace}/${place}`)}`);
      await state.ready(page);
      // The list of chats at the side is as long as other states make it.
      await settle(page, ['.chat-list li', ...(state.changing ?? [])]);
      for (const look of LOOKS) {
        faults.push(await compared(page, judge, name, look));
        faults.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth > 0 ? `it is too wide at ${innerWidth}` : undefined));
      }
    } finally {
      // A state that fails leaves nothing to the next one.
      await state.end?.(page);
      await page.close();
    }
    assert.deepEqual(faults.filter(fault => fault !== undefined), []);
  });
}
