import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';

let world;
before(async () => { world = await begin(); });
after(() => world.end());

const POLICY = '/system/policies/contracts.cedar';
const write = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content}});
const decision = (page, action) => page.getByRole('region', {name: /^Decisions on/}).getByRole('row').filter({has: page.getByRole('cell', {name: action, exact: true})});
const ask = async (page, path, who) => {
  await page.getByRole('textbox', {name: 'Path'}).fill(path);
  await page.getByRole('combobox', {name: 'Who'}).selectOption({label: who});
  await page.getByRole('button', {name: 'Explain'}).click();
};

test('a decision is explained with its policy, and a policy of the workspace leads to its file', async () => {
  const page = await world.open('people');
  await ask(page, '/system/agents/builder/AGENT.md', 'The agent assistant, for you');
  await decision(page, 'write').getByText('a person is asked').waitFor();
  await decision(page, 'write').getByText('agent-asks-for-system').waitFor();
  await decision(page, 'read').getByText('yes').waitFor();
  await page.reload();
  await page.waitForFunction(() => document.querySelector('.access-form select')?.value === 'agent:assistant');
  assert.equal(await page.getByRole('textbox', {name: 'Path'}).inputValue(), '/system/agents/builder/AGENT.md');
  await decision(page, 'write').getByText('agent-asks-for-system').waitFor();
  assert.deepEqual(await violations(page), []);
  await ask(page, '/contracts/one.md', 'The agent assistant, for you');
  await decision(page, 'write').getByText('yes').waitFor();
  await write(POLICY, `@id("contracts")
@why("lawyers write the contracts")
forbid (principal is Agent, action == Action::"write", resource in Path::"/contracts");
`);
  await decision(page, 'write').getByText('lawyers write the contracts').waitFor();
  await decision(page, 'write').getByRole('link').click();
  await page.getByRole('heading', {name: 'contracts.cedar'}).waitFor();
  await page.context().close();
});

test('decisions stand beside their own question alone, and a persona that is gone is named', async () => {
  const page = await world.open('people');
  await ask(page, '/projects', 'You');
  const table = page.getByRole('region', {name: /^Decisions on/});
  await table.waitFor();
  await page.getByRole('combobox', {name: 'Who'}).selectOption({label: 'A task of yours'});
  await table.waitFor({state: 'detached'});
  await page.getByRole('combobox', {name: 'Who'}).selectOption({label: 'You'});
  await table.waitFor();
  await page.evaluate(key => localStorage.setItem(key, JSON.stringify({principal: 'agent:gone'})), `buildscale.draft.${world.workspace}/access`);
  await page.reload();
  await page.getByRole('option', {name: 'The agent assistant, for you'}).waitFor({state: 'attached'});
  assert.equal(await page.getByRole('combobox', {name: 'Who'}).inputValue(), 'agent:gone');
  await page.context().close();
});

test('the explanation looks right in both themes and on a phone', async () => {
  await looksRight(world, 'people', async page => {
    await ask(page, '/projects', 'You');
    await decision(page, 'purge').waitFor();
  });
});
