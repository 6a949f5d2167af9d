import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';

let world;
before(async () => {
  world = await begin();
  await write('/projects/plan.md', '# The plan\n\nSee [[idea]] and [the code](/projects/code.py).\n');
  await write('/projects/idea.md', '# The idea\n\nIt comes from [[source]], and [[nowhere]].\n');
  await write('/projects/source.md', '# The source\n');
  await write('/projects/code.py', 'print(1)\n');
});
after(() => world.end());

const write = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content}});
const node = (page, name) => page.locator('.react-flow__node').filter({hasText: name});
const list = (page, name) => page.getByRole('list', {name});

test('the files around a file are a graph that one walks through, by mouse and by keyboard', async () => {
  const page = await world.open('files/projects/plan.md');
  await page.getByRole('link', {name: 'Links', exact: true}).click();
  for (const name of ['plan.md', 'idea.md', 'code.py', 'source.md']) await node(page, name).waitFor();
  await page.getByRole('combobox', {name: /How far/}).selectOption('1');
  await node(page, 'source.md').waitFor({state: 'detached'});
  assert.deepEqual(await violations(page), []);
  await node(page, 'idea.md').click();
  await page.getByRole('heading', {name: 'idea.md'}).waitFor();
  await list(page, 'Links to here').getByRole('link', {name: '/projects/plan.md'}).waitFor();
  await page.getByText('nowhere leads nowhere').waitFor();
  await node(page, 'source.md').press('Enter');
  await page.getByRole('heading', {name: 'source.md'}).waitFor();
  await page.context().close();
});

test('a file is tagged and linked, and both are taken back', async () => {
  const page = await world.open('files/projects/source.md?view=links');
  await page.getByRole('textbox', {name: 'New tag'}).fill('Draft');
  await page.reload();
  await page.waitForFunction(() => document.querySelector('[aria-label="New tag"]')?.value === 'Draft');
  await page.getByRole('textbox', {name: 'New tag'}).click();
  await page.keyboard.press('Enter');
  await list(page, 'Tags').getByText('draft').waitFor();
  await page.getByRole('button', {name: 'Link a file'}).click();
  await page.getByRole('combobox', {name: 'Path'}).fill('/projects/code.py');
  await page.getByRole('combobox', {name: 'Kind'}).fill('implements');
  await page.reload();
  await page.waitForFunction(() => document.querySelector('input.mono')?.value === '/projects/code.py');
  assert.equal(await page.getByRole('combobox', {name: 'Kind'}).inputValue(), 'implements');
  await page.getByRole('button', {name: 'Link it'}).click();
  await list(page, 'Links from here').getByRole('link', {name: '/projects/code.py'}).waitFor();
  await node(page, 'code.py').waitFor();
  const {file_id} = await world.api.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/projects/source.md'}});
  const told = () => world.api.get('/api/v1/workspaces/{workspace_id}/files/{file_id}/links', {path: {...world.path, file_id}});
  const {tags, links} = await told();
  assert.deepEqual([tags, links.map(({kind, file}) => [kind, file.path])], [['draft'], [['implements', '/projects/code.py']]]);
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', {name: 'Remove the link to /projects/code.py'}).click();
  await list(page, 'Links from here').waitFor({state: 'detached'});
  await page.getByRole('button', {name: 'Remove the tag draft'}).click();
  await list(page, 'Tags').getByText('none').waitFor();
  const gone = await told();
  assert.deepEqual([gone.tags, gone.links], [[], []]);
  await page.getByRole('button', {name: 'Link a file'}).click();
  await page.getByRole('combobox', {name: 'Path'}).fill('/projects/missing.md');
  await page.getByRole('button', {name: 'Link it'}).click();
  await page.getByRole('alert').getByText('NOT_FOUND').waitFor();
  await page.context().close();
});

test('the tags of the workspace lead to the files that have them', async () => {
  await write('/projects/tagged.md', '---\ntags: [draft, later]\n---\n# Tagged\n');
  await write('/projects/other.md', '---\ntags: [draft]\n---\n# Other\n');
  const page = await world.open('files/projects/tagged.md?view=links');
  await list(page, 'Tags').getByRole('link', {name: 'draft'}).click();
  const files = page.getByRole('region', {name: 'Files with the tag draft'});
  await files.getByRole('link', {name: /tagged\.md/}).waitFor();
  await files.getByRole('link', {name: /other\.md/}).waitFor();
  await list(page, 'Tags').getByRole('link', {name: 'later 1'}).click();
  await page.getByRole('region', {name: 'Files with the tag later'}).getByRole('link', {name: /tagged\.md/}).waitFor();
  await page.context().close();
  await looksRight(world, 'files?view=tags&tag=draft', page => page.getByRole('link', {name: /other\.md/}).waitFor());
});

test('links look right in both themes and on a phone, with a file that has none, too', async () => {
  await write('/projects/alone.txt', 'alone');
  await looksRight(world, 'files/projects/plan.md?view=links', page => node(page, 'idea.md').waitFor());
  await looksRight(world, 'files/projects/alone.txt?view=links', page => page.getByText('No file is linked with this one').waitFor());
});
