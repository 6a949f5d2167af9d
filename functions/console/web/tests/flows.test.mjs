import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, violations} from './browser.mjs';

let world;
before(async () => { world = await begin(); });
after(() => world.end());

const FOLDER = '/system/flows/colours';
const MANIFEST = `version: 1
description: Asks for a colour and says it again.
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, schema_in: wish, op: {expr: input}}
  - id: ask
    kind: deterministic
    role: linear
    context: none
    ask: {questions: [{name: colour, question: 'Which colour?', schema: {type: string, maxLength: 40}, buttons: [green, blue]}]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: ask}
  - {from: ask, to: end}
`;
const put = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content}});

test('a flow in the box is run with a form, and its run is painted on its graph', async () => {
  const page = await world.open('flows');
  await page.getByRole('link', {name: /^plan_and_execute/}).click();
  await page.getByText('checked').waitFor();
  await page.locator('.react-flow__node').getByText('Receive the goal').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole('textbox', {name: /^goal/i}).fill('Document the parser');
  await page.getByRole('button', {name: 'Run', exact: true}).click();
  await page.getByRole('banner').or(page.locator('.page-head')).getByText('success').waitFor();
  await page.locator('.node.done').getByText('Report', {exact: true}).waitFor();
  await page.locator('.node').getByText('done 2/2').waitFor();
  await page.locator('.json').getByText(/Both steps of the demo were done/).waitFor();
  await page.locator('.react-flow__node').getByText('Report', {exact: true}).click();
  await page.getByRole('link', {name: 'The conversation of its agent'}).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.reload();
  await page.locator('.node.done').getByText('Report', {exact: true}).waitFor();
  await page.getByRole('link', {name: 'The conversation of its agent'}).waitFor();
  // Its address leads another person there.
  const other = await world.open();
  await other.goto(page.url());
  await other.getByRole('link', {name: 'The conversation of its agent'}).waitFor();
  await other.context().close();
  // By keyboard, too.
  const first = page.locator('.react-flow__node').filter({hasText: 'Receive the goal'});
  await first.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('complementary', {name: 'The run'}).getByRole('link', {name: 'The conversation of its agent'}).waitFor({state: 'detached'});
  await page.context().close();
});

test('a task is stepped through and resumed, and another one is stopped', async () => {
  const page = await world.open('flows/plan_and_execute');
  const press = name => page.getByRole('button', {name, exact: true}).click();
  const begin = async () => {
    await page.getByRole('textbox', {name: /^goal/i}).fill('Step by step');
    await page.getByRole('checkbox', {name: 'Pause before each node'}).check();
    await page.reload();
    await page.getByRole('checkbox', {name: 'Pause before each node', checked: true}).waitFor();
    await press('Run');
    await press('Step');
    await page.locator('.node.done').getByText('Receive the goal').waitFor();
  };
  await begin();
  await press('Resume');
  await page.locator('.page-head').getByText('success').waitFor();
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/plan_and_execute`);
  await begin();
  await press('Stop');
  await page.getByRole('button', {name: 'Stop', exact: true}).waitFor({state: 'detached'});
  await page.context().close();
});

test('a flow of the workspace asks a person, who answers on its graph', async () => {
  await put(`${FOLDER}/schemas/wish.json`, JSON.stringify({type: 'object', required: ['thing'], properties: {thing: {type: 'string', maxLength: 60, description: 'What gets the colour.'}, size: {type: 'integer'}}}));
  await put(`${FOLDER}/workflow.yaml`, MANIFEST);
  const page = await world.open('flows/colours');
  await page.getByRole('textbox', {name: /thing/}).fill('The door');
  await page.getByRole('spinbutton', {name: /size/}).fill('3');
  await page.getByRole('button', {name: 'Run', exact: true}).click();
  const form = page.getByRole('form', {name: 'ask asks'});
  await form.getByRole('button', {name: 'blue'}).click();
  await page.locator('.json').getByText(/"colour": "blue"/).first().waitFor();
  await page.locator('.json').getByText(/"size": 3/).waitFor();
  await page.context().close();
});

test('the faults of a flow have their places, and lead to the editor', async () => {
  await put('/system/flows/broken/workflow.yaml', MANIFEST.replace('to: end', 'to: nowhere'));
  const page = await world.open('flows/broken');
  const fault = page.locator('.faults li').filter({hasText: 'nowhere'}).first();
  await fault.waitFor();
  assert.deepEqual(await violations(page), []);
  await fault.getByRole('link', {name: /workflow\.yaml:\d+:\d+/}).click();
  await page.getByRole('textbox', {name: /Content of \/system\/flows\/broken\/workflow\.yaml/}).waitFor();
  await page.context().close();
});
