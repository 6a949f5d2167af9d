// Requests of pages that fail or whose answers are lost, and choices that are not listed any more: nothing is silent, wrong, or done twice.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {watchTask} from '../../../../clients/typescript/dist/index.js';
import {begin, until} from './browser.mjs';

const MANIFEST = `version: 1
description: Says something.
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, op: {expr: input}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: end}
`;
const ASKS = MANIFEST.replace('  - {id: end', "  - {id: ask, kind: deterministic, role: linear, context: none, ask: {questions: [{name: colour, question: 'Which colour?', schema: {type: string, maxLength: 40}, buttons: [green]}]}}\n  - {id: end")
  .replace('{from: begin, to: end}', '{from: begin, to: ask}\n  - {from: ask, to: end}');
let world;
before(async () => {
  world = await begin();
  for (const [flow, content] of Object.entries({short: MANIFEST, colours: ASKS})) {
    await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: `/system/flows/${flow}/workflow.yaml`}, body: {content}});
  }
});
after(() => world.end());

const FAULT = {status: 500, json: {error: {code: 'INTERNAL', message: 'something failed on the server', request_id: 'req-1'}}};
const failed = route => route.fulfill(FAULT);
const failureOf = page => page.getByRole('alert').filter({hasText: 'INTERNAL'});
const WORKSPACES = '**/api/v1/workspaces?*';
const run = async flow => (await world.api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...world.path, flow}, body: {input: {}}})).task_id;
const keep = (page, key, value) => page.evaluate(([key, value]) => localStorage.setItem(key, JSON.stringify(value)), [`buildscale.draft.${world.workspace}/${key}`, value]);

test('a list of workspaces that cannot be read once more takes no page away', async () => {
  const page = await world.open('chats');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.route(WORKSPACES, failed);
  // A refusal has the page read its workspaces again.
  await page.route('**/usage?*', route => route.fulfill({status: 401, json: {error: {code: 'UNAUTHORIZED', message: 'who are you?', request_id: 'req-1'}}}));
  const again = page.waitForResponse(WORKSPACES);
  await page.getByRole('link', {name: 'Usage'}).click();
  await (await again).finished();
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.getByRole('link', {name: 'Health'}).click();
  await page.getByRole('heading', {name: 'Health'}).waitFor();
  await page.context().close();
});

test('a workspace beyond the list has its own name in the picker, and one that cannot be read is not told to be missing', async () => {
  const page = await world.open();
  await page.route(WORKSPACES, route => route.fulfill({json: {workspaces: [{workspace_id: '01890000-0000-7000-8000-000000000009', name: 'Another', created_at: '2026-01-01T00:00:00Z'}]}}));
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats`);
  await page.reload();
  await page.waitForFunction(() => document.querySelector('select[aria-label="Workspace"]')?.selectedOptions[0]?.text === 'Stories');
  await page.route(`**/api/v1/workspaces/${world.workspace}`, failed);
  await page.reload();
  await failureOf(page).waitFor();
  await page.unroute(`**/api/v1/workspaces/${world.workspace}`);
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.context().close();
});

test('a run that cannot be read once more stays on the page', async () => {
  const task = await run('short');
  for await (const event of watchTask(world.api, {workspace: world.workspace, task}, {after: 0})) void event;
  const page = await world.open(`flows/short/${task}`);
  await page.locator('.node.done').nth(1).waitFor();
  await page.route(`**/tasks/${task}`, failed);
  // Another run has the page read its runs again.
  await run('short');
  await failureOf(page).waitFor();
  assert.equal(await page.locator('.node.done').count(), 2);
  await page.unroute(`**/tasks/${task}`);
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await failureOf(page).waitFor({state: 'detached'});
  await page.context().close();
});

test('a viewer sees the question of a run without a form, and what waits is not silent when it cannot be read', async () => {
  const task = await run('colours');
  const page = await world.open();
  await page.route('**/members/me', route => route.fulfill({json: {role: 'viewer', may: ['read']}}));
  await page.route('**/waiting?*', failed);
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/colours/${task}`);
  const card = page.getByRole('region', {name: 'ask asks'});
  await card.getByText('Answering it needs the right to run').waitFor();
  await card.getByText('Which colour?').waitFor();
  assert.equal(await card.getByRole('button').count(), 0);
  await failureOf(page).waitFor();
  await page.context().close();
});

test('a run whose answer was lost is begun once', async () => {
  const count = async () => (await world.api.get('/api/v1/workspaces/{workspace_id}/tasks', {path: world.path, query: {flow: 'short', limit: 200}})).tasks.length;
  const before = await count();
  const page = await world.open('flows/short');
  const keys = [];
  await page.route('**/flows/short/tasks', async route => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length > 1) return route.continue();
    await route.fetch();
    return failed(route);
  });
  const press = () => page.getByRole('button', {name: 'Run', exact: true}).click();
  await press();
  await failureOf(page).waitFor();
  await press();
  await page.getByRole('heading', {name: /^Run [0-9a-f]{6}$/}).waitFor();
  assert.equal(keys[1], keys[0]);
  await until(async () => await count() === before + 1);
  await page.context().close();
});

test('the palette tells of a search that fails, and the keys of an input method choose words of it', async () => {
  const page = await world.open('chats');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.route('**/search', failed);
  await page.keyboard.press('Control+k');
  const box = page.getByRole('combobox', {name: 'Search and commands'});
  await box.dispatchEvent('keydown', {key: 'Enter', isComposing: true});
  assert.equal(await page.locator('dialog.palette').evaluate(dialog => dialog.open), true);
  // A word of two letters.
  await box.fill('合同');
  await failureOf(page).waitFor();
  assert.equal(await page.getByText('Nothing found.').count(), 0);
  await page.unroute('**/search');
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await page.getByText('Nothing found.').waitFor();
  await page.context().close();
});

test('a form shows the choice that it sends, also one that is not listed any more', async () => {
  const page = await world.open('webhooks');
  await page.getByText('Nobody is told anything').waitFor();
  await keep(page, 'webhook', {flow: 'gone'});
  await page.reload();
  await page.getByRole('button', {name: 'New webhook'}).click();
  await page.getByRole('option', {name: 'short'}).waitFor({state: 'attached'});
  assert.equal(await page.getByRole('combobox', {name: /Only of a flow/}).inputValue(), 'gone');
  await page.context().close();
});

test('a dialog holds a long name', async () => {
  const name = 'n'.repeat(100);
  const {webhook} = await world.api.post('/api/v1/workspaces/{workspace_id}/webhooks', {path: world.path, body: {name, url: 'https://example.com/hooks', events: ['plan.submitted']}});
  const page = await world.open('webhooks', {width: 390});
  await page.getByRole('button', {name: `Remove ${name}`}).click();
  const over = await page.getByRole('dialog').evaluate(dialog => dialog.scrollWidth - dialog.clientWidth);
  assert.equal(over, 0);
  await world.api.delete('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}', {path: {...world.path, webhook_id: webhook.webhook_id}});
  await page.context().close();
});

test('a command that was given days ago is not run again, and the words in the field outlast a look at the history', async () => {
  const page = await world.open('usage');
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  const days = Date.now() - 2 * 86_400_000;
  await keep(page, 'terminal/runs', {runs: [{key: `console-${days.toString(36)}-a`, command: 'date'}]});
  let asked = 0;
  await page.route('**/tools', route => {
    asked++;
    return route.continue();
  });
  await page.getByRole('link', {name: 'Sandbox'}).click();
  await page.getByRole('log', {name: 'Commands'}).getByText('It is not run again').waitFor();
  assert.equal(asked, 0);
  const field = page.getByRole('textbox', {name: 'Command'});
  await field.fill('echo half of a');
  await page.keyboard.press('ArrowUp');
  assert.equal(await field.inputValue(), 'date');
  await page.keyboard.press('ArrowDown');
  assert.equal(await field.inputValue(), 'echo half of a');
  await page.context().close();
});

test('a next page that cannot be read is told where it was asked for, and the list stays', async () => {
  const page = await world.open();
  const one = number => ({task_id: `01890000-0000-7000-8000-0000000000a${number}`, flow: {name: `run-${number}`}, phase: 'finished', status: 'success', created_at: '2026-01-01T00:00:00Z'});
  let fails = true;
  await page.route('**/tasks?*', route => {
    const isNext = new URL(route.request().url()).searchParams.get('cursor') === 'next';
    if (isNext && fails) return failed(route);
    return route.fulfill({json: isNext ? {tasks: [one(2)]} : {tasks: [one(1)], next_cursor: 'next'}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows`);
  await page.getByRole('button', {name: 'More', exact: true}).click();
  await failureOf(page).waitFor();
  assert.equal(await failureOf(page).count(), 1);
  assert.equal(await page.getByRole('link', {name: /run-1/}).count(), 1);
  fails = false;
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await page.getByRole('link', {name: /run-2/}).waitFor();
  await failureOf(page).waitFor({state: 'detached'});
  await page.context().close();
});

test('a file that cannot be read once more stays on the page, with the words that are typed into it', async () => {
  const write = path => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content: 'one'}});
  await write('/projects/kept.txt');
  const page = await world.open('files/projects/kept.txt');
  const editor = page.getByRole('textbox', {name: /Content of/});
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' and half of a thought');
  await page.route('**/files/by-path?*', failed);
  // Another file has the page read its files again.
  await write('/projects/another.txt');
  await failureOf(page).waitFor();
  await editor.getByText('one and half of a thought').waitFor();
  await page.unroute('**/files/by-path?*');
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await failureOf(page).waitFor({state: 'detached'});
  await editor.getByText('one and half of a thought').waitFor();
  await page.context().close();
});

test('a person who may only read finds the tags and the trash on a phone', async () => {
  const page = await world.open('', {width: 390});
  await page.route('**/members/me', route => route.fulfill({json: {role: 'viewer', may: ['read']}}));
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files`);
  await page.locator('.entries').waitFor();
  await page.getByRole('button', {name: 'New file'}).waitFor({state: 'detached'});
  await page.getByRole('main').getByRole('link', {name: 'Tags'}).waitFor();
  await page.getByRole('main').getByRole('link', {name: 'Trash'}).click();
  await page.getByRole('heading', {name: 'Trash', exact: true}).waitFor();
  await page.context().close();
});
