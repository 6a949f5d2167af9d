import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {watchTask} from '../../../../clients/typescript/dist/index.js';
import {begin, looksRight, violations} from './browser.mjs';

const MANIFEST = `version: 1
description: Asks for a colour and says it again.
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, op: {expr: input}}
  - id: ask
    kind: deterministic
    role: linear
    context: none
    ask: {questions: [{name: colour, question: 'Which colour?', schema: {type: string, maxLength: 40}}]}
  - {id: say, kind: deterministic, role: linear, context: none, op: {expr: "{'said': input.colour, 'to': outputs.begin.who}"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: ask}
  - {from: ask, to: say}
  - {from: say, to: end}
`;
let world;
before(async () => {
  world = await begin();
  await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/system/flows/colours/workflow.yaml'}, body: {content: MANIFEST}});
});
after(() => world.end());

/** A run that has ended, with this answer of a person. */
async function run(colour) {
  const {task_id} = await world.api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...world.path, flow: 'colours'}, body: {input: {who: 'the world'}}});
  for await (const {event, data} of watchTask(world.api, {workspace: world.workspace, task: task_id}, {after: 0})) {
    if (event === 'question') await world.api.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}', {path: {...world.path, task_id, node: data.node}, body: {answers: {colour}}});
  }
  return task_id;
}
const row = (page, node) => page.getByRole('region', {name: 'What each node did'}).getByRole('row').filter({hasText: node});

test('two runs are compared side by side: where they part, and what each node did', async () => {
  const [blue, green] = [await run('blue'), await run('green')];
  const page = await world.open(`flows/colours/${blue}`);
  await page.getByRole('combobox', {name: 'The other run'}).selectOption({value: green});
  await page.getByRole('button', {name: 'Compare'}).click();
  const parting = page.getByRole('region', {name: 'Where they part'});
  await parting.getByText('ask gave different outputs').waitFor();
  await parting.getByText('blue').waitFor();
  await parting.getByText('green').waitFor();
  await row(page, 'begin').getByText('same').waitFor();
  await row(page, 'say').getByText('differs').waitFor();
  for (const name of ['The first run', 'The second run']) {
    const side = page.getByRole('region', {name});
    await side.locator('.node.done.marked').filter({hasText: 'ask'}).waitFor();
    assert.equal(await side.locator('.node.marked').filter({hasText: 'begin'}).count(), 0);
  }
  assert.deepEqual(await violations(page), []);
  await page.getByRole('link', {name: 'Swap'}).click();
  await page.getByRole('region', {name: 'The first run'}).getByRole('link', {name: `Run ${green.slice(-6)}`}).waitFor();
  await page.context().close();
  await looksRight(world, `flows/colours/${blue}?with=${green}`, async page => {
    await page.getByText('ask gave different outputs').waitFor();
    await page.locator('.node.marked').nth(1).waitFor();
  });
});

test('a run is replayed with its recorded answers, and from a node with new ones', async () => {
  const red = await run('red');
  const page = await world.open(`flows/colours/${red}`);
  await page.getByRole('button', {name: 'Replay', exact: true}).click();
  await page.getByText('The runs do not part').waitFor();
  await page.getByRole('region', {name: 'The second run'}).getByText(`replays ${red.slice(-6)}`).waitFor();
  await page.getByRole('region', {name: 'The first run'}).getByRole('link', {name: /^Run/}).click();
  await page.getByRole('region', {name: 'The second run'}).waitFor({state: 'detached'});
  await page.locator('.react-flow__node strong').getByText('ask', {exact: true}).click();
  await page.getByRole('button', {name: 'Replay from here'}).click();
  const second = page.getByRole('region', {name: 'The second run'});
  await second.locator('.node.asks').waitFor();
  await second.getByRole('link', {name: /^Run/}).click();
  await second.waitFor({state: 'detached'});
  await page.getByRole('textbox', {name: 'Which colour?'}).fill('yellow');
  await page.getByRole('button', {name: 'Answer'}).click();
  await page.locator('.json').getByText(/"said": "yellow"/).first().waitFor();
  await page.context().close();
});

test('a run is compared with one that is older than those of the first page', async () => {
  const [older, newer] = [await run('black'), await run('white')];
  const one = task_id => ({task_id, flow: {name: 'colours'}, phase: 'finished', status: 'success', created_at: '2026-01-01T00:00:00Z'});
  const page = await world.open();
  await page.route('**/tasks?*', route => {
    const isNext = new URL(route.request().url()).searchParams.get('cursor') === 'next';
    return route.fulfill({json: isNext ? {tasks: [one(older)]} : {tasks: [one(newer)], next_cursor: 'next'}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/colours/${newer}`);
  const more = page.getByRole('button', {name: 'Older runs'});
  await more.waitFor();
  assert.equal(await page.getByText('There is no other run of this flow.').count(), 0);
  await more.click();
  await page.getByRole('combobox', {name: 'The other run'}).selectOption({value: older});
  await more.waitFor({state: 'detached'});
  await page.getByRole('button', {name: 'Compare'}).click();
  await page.getByRole('region', {name: 'Where they part'}).getByText('ask gave different outputs').waitFor();
  await page.context().close();
});
