// Questions of agents and of the servers that they use.
import assert from 'node:assert/strict';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {begin, violations} from './browser.mjs';

let world, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'asks-'));
  const script = join(folder, 'script.yaml');
  await writeFile(script, `rules:
- when: {user: '^pay'}
  steps:
  - calls: [{tool: ask_user, args: {questions: [{name: paid, question: 'Open https://shop.example/pay?id=7: is it paid?', schema: {enum: ['yes', 'no']}}]}}]
  - {text: 'You said {{call.0.output/paid}}.'}
- when: {user: '^Keep '}
  steps:
  - calls: [{tool: write, args: {path: /system/skills/kept/SKILL.md, content: kept}}]
  - {when: {success: true}, text: 'It is kept.', else: {text: 'It is not kept.'}}
`);
  world = await begin({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
});
after(async () => {
  await world.end();
  await rm(folder, {recursive: true});
});

test('an address in a question is a link that is shown whole', async () => {
  const chat = await world.chat('pay');
  const page = await world.open(`chats/${chat}`);
  const form = page.getByRole('form', {name: 'The agent asks'});
  const link = form.getByRole('link', {name: 'https://shop.example/pay?id=7', exact: true});
  assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel')], ['https://shop.example/pay?id=7', 'noreferrer noopener']);
  await page.locator('.chat-head').getByText('needs you').waitFor();
  assert.deepEqual(await violations(page), []);
  await form.getByRole('combobox').selectOption('yes');
  await form.getByRole('button', {name: 'Answer'}).click();
  await page.getByRole('log', {name: 'Conversation'}).getByText('You said yes.').waitFor();
  await page.context().close();
});

test('agents of subtasks ask on the page of the run, and are answered there', async () => {
  const {api, path} = world;
  const put = (name, content) => api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path, query: {path: `/system/flows/keepers/${name}`}, body: {content}});
  await put('workflow.yaml', `nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: keep, kind: agent, role: linear, context: none, agent_id: keeper, prompt: 'Keep {{input}}', tools: [write]}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: keep}, {from: keep, to: gather}, {from: gather, to: end}]
`);
  await put('agents.yaml', 'agents:\n  - {id: keeper, system: You are a keeper of skills.}\n');
  await put('tools.yaml', 'tools:\n  - {id: write}\n');
  const {task_id: task} = await api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...path, flow: 'keepers'}, body: {input: ['a', 'b'], budget: {max_tokens: 100_000, max_cost_usd: 2}}});
  const page = await world.open(`flows/keepers/${task}`);
  const asks = page.getByRole('region', {name: 'keep waits'});
  await asks.nth(1).waitFor();
  const facts = page.locator('.facts div');
  await facts.filter({hasText: 'Budget of tokens'}).getByText(/of 100K$/).waitFor();
  await facts.filter({hasText: 'Budget of money'}).getByText(/of \$2\.00$/).waitFor();
  await asks.first().getByText('kept').first().waitFor();
  assert.deepEqual(await violations(page), []);
  await asks.first().getByRole('button', {name: 'Allow once'}).click();
  await asks.nth(1).waitFor({state: 'detached'});
  await asks.getByRole('button', {name: 'Deny…'}).click();
  await asks.getByRole('textbox', {name: /The reason/}).fill('One is enough');
  await asks.getByRole('button', {name: 'Deny', exact: true}).click();
  await asks.waitFor({state: 'detached'});
  await page.locator('.json').getByText(/It is kept\./).waitFor();
  await page.locator('.json').getByText(/It is not kept\./).waitFor();
  await page.context().close();
});
