import assert from 'node:assert/strict';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';

let world;
before(async () => { world = await begin(); });
after(() => world.end());

const write = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content}});
const read = async path => (await world.api.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: world.path, query: {path}})).text();
/** The next full second after a change, in the zone of the browser, once it is over. No full minute: a field drops seconds that are zero, and cannot be filled with them. */
async function secondAfter(page, {at}) {
  const second = Math.floor(Date.parse(at) / 1000 + 1);
  const next = 1000 * (second % 60 === 0 ? second + 1 : second);
  await page.waitForFunction(time => Date.now() > time, next);
  return page.evaluate(time => new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 19), next);
}

test('a folder goes back to a time: what would change is shown first, then it is done, and undone', async () => {
  const page = await world.open('files/projects');
  const change = await write('/projects/back/plan.md', 'the old plan\n');
  const time = await secondAfter(page, change);
  await write('/projects/back/plan.md', 'a new plan\n');
  await write('/projects/back/extra.md', 'extra\n');
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files/projects/back`);
  await page.getByRole('link', {name: 'Go back'}).click();
  await page.getByLabel('The time').fill(time);
  await page.reload();
  assert.equal(await page.getByLabel('The time').inputValue(), time);
  const steps = page.getByRole('list', {name: 'What would change'});
  await steps.getByRole('listitem').filter({hasText: 'extra.md'}).getByText('goes to the trash').waitFor();
  const plan = steps.getByRole('listitem').filter({hasText: 'plan.md'});
  await plan.getByText('version 1 becomes current again').waitFor();
  await plan.getByText('What changes').click();
  await plan.getByText('+the old plan').waitFor();
  assert.deepEqual(await violations(page), []);
  assert.equal(await read('/projects/back/plan.md'), 'a new plan\n', 'a preview changes nothing');
  await page.getByRole('button', {name: 'Take back 2 changes'}).click();
  await page.getByRole('status').getByText('Done: 2 changes.').waitFor();
  await page.reload();
  await page.getByRole('status').getByText('Done: 2 changes.').waitFor();
  assert.equal(await read('/projects/back/plan.md'), 'the old plan\n');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', {name: 'Undo'}).click();
  await page.getByText('Undone: 2 changes.').waitFor();
  await page.reload();
  await page.getByRole('button', {name: /^Take back/}).waitFor();
  assert.equal(await read('/projects/back/plan.md'), 'a new plan\n');
  assert.equal(await read('/projects/back/extra.md'), 'extra\n');
  await page.context().close();
});

test('a preview follows what others change, and a time without changes says so', async () => {
  await write('/projects/live/one.md', 'one\n');
  const page = await world.open('files/projects/live?view=rewind');
  await page.getByRole('button', {name: 'An hour ago'}).click();
  await page.getByRole('button', {name: /Take back \d changes?/}).waitFor();
  await write('/projects/live/two.md', 'two\n');
  await page.getByRole('list', {name: 'What would change'}).getByText('two.md').waitFor();
  await page.getByLabel('The time').fill(await secondAfter(page, await write('/projects/live/three.md', 'three\n')));
  await page.getByText('Nothing has changed since then').waitFor();
  await page.context().close();
});

test('going back looks right in both themes and on a phone', async () => {
  await write('/projects/a folder with a long name/a file with a very long name that does not fit on a phone.md', 'text\n');
  await looksRight(world, 'files/projects?view=rewind', async page => {
    await page.getByRole('button', {name: 'An hour ago'}).click();
    await page.getByRole('button', {name: /Take back/}).waitFor();
  });
});

test('the changes of a run are taken back, and stay when somebody else has changed them since', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'story-'));
  const script = join(folder, 'script.yaml');
  await writeFile(script, `rules:
  - when: {system: '^You write'}
    steps:
      - calls: [{tool: write_file, args: {path: /projects/run/one.md, content: "one"}}]
      - calls: [{tool: write_file, args: {path: /projects/run/two.md, content: "two"}}]
      - text: '{"done": true}'
`);
  const other = await begin({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
  try {
    const put = (path, content) => other.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: other.path, query: {path}, body: {content}});
    const flow = '/system/flows/writer';
    await put(`${flow}/agents.yaml`, 'version: 1\nagents:\n  - {id: writer, system: You write files., limits: {max_steps: 9, max_seconds: 60}}\n');
    await put(`${flow}/tools.yaml`, `version: 1
tools:
  - {id: write_file, type: filesystem, entrypoint: "tools.fs:write_file", permissions: {root: /projects, allow_network: false, allow_shell: false}}
`);
    await put(`${flow}/workflow.yaml`, `version: 1
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: write, kind: agent, role: linear, agent_id: writer, context: none, tools: [write_file], prompt: Write.}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: write}
  - {from: write, to: end}
`);
    const {task_id} = await other.api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...other.path, flow: 'writer'}, body: {input: {}}});
    const page = await other.open(`flows/writer/${task_id}`);
    await page.locator('.page-head').getByText('success').waitFor();
    await put('/projects/run/two.md', 'mine');
    await page.getByRole('button', {name: 'Take back its changes'}).click();
    const dialog = page.getByRole('dialog', {name: 'Take back the changes of this run'});
    await dialog.getByRole('list', {name: 'What would change'}).getByText('/projects/run/one.md').waitFor();
    await dialog.getByRole('list', {name: 'What stays as it is'}).getByText('/projects/run/two.md').waitFor();
    assert.deepEqual(await violations(page), []);
    await dialog.getByRole('button', {name: /^Take back/}).click();
    await dialog.getByText(/^Done: \d+ changes/).waitFor();
    const {entries} = await other.api.get('/api/v1/workspaces/{workspace_id}/files', {path: other.path, query: {path: '/projects/run'}});
    assert.deepEqual(entries.map(({name}) => name), ['two.md']);
  } finally {
    await other.end();
    await rm(folder, {recursive: true});
  }
});
