import assert from 'node:assert/strict';
import {readdir, readFile} from 'node:fs/promises';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';

const FOLDER = new URL('../../../../examples/github-issues/flow/', import.meta.url);
let world;
before(async () => {
  world = await begin();
  for (const entry of await readdir(FOLDER, {recursive: true, withFileTypes: true})) {
    if (!entry.isFile()) continue;
    const path = `${entry.parentPath ?? entry.path}/${entry.name}`.slice(FOLDER.pathname.length).replace(/^\/+/, '');
    await put(path, await readFile(new URL(path, FOLDER), 'utf8'));
  }
});
after(() => world.end());

const put = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: `/system/flows/issues/${path}`}, body: {content}});

test('a flow is evaluated, each case is shown over time, and a case that fails says why', async () => {
  const page = await world.open('flows/issues');
  await page.getByRole('link', {name: 'Evaluations'}).click();
  await page.getByText('This flow was not evaluated yet').waitFor();
  await page.getByRole('button', {name: 'Evaluate'}).click();
  const chosen = page.getByRole('region', {name: 'The chosen evaluation'});
  // Two runs of a flow take their time beside other stories.
  const ends = words => chosen.getByText(words).waitFor({timeout: 120_000});
  await ends('2 passed');
  const manifest = await readFile(new URL('evaluations.yaml', FOLDER), 'utf8');
  await put('evaluations.yaml', manifest.replace('expected: a person declined', 'expected: nobody knows'));
  await page.getByRole('button', {name: 'Evaluate'}).click();
  await ends('1 failed');
  const failed = chosen.getByRole('listitem').filter({hasText: 'basics/declined'});
  await failed.getByText(/nobody knows/).first().waitFor();
  const table = page.getByRole('region', {name: 'Cases over time'});
  await table.getByRole('row').filter({hasText: 'basics/declined'}).getByText('failed').first().waitFor({state: 'attached'});
  const cells = async name => (await table.getByRole('row').filter({hasText: name}).getByRole('cell').allInnerTexts()).map(text => text.replace(/\s+/g, ''));
  assert.deepEqual([await cells('basics/fault'), await cells('basics/declined')], [['✓passed', '✓passed'], ['✓passed', '✗failed']]);
  assert.deepEqual(await violations(page), []);
  await table.getByRole('button', {name: /^2.2 passed/}).click();
  await chosen.getByText('2 passed').waitFor();
  await table.getByRole('button', {name: /^1.2 passed/}).click();
  await failed.getByRole('link', {name: 'Its run'}).click();
  await page.getByRole('heading', {name: /^Run /}).waitFor();
  await page.context().close();
  await looksRight(world, 'flows/issues?view=evaluations', page => page.getByText('1 failed').waitFor());
});

test('an evaluation behind those of other flows is found', async () => {
  const page = await world.open();
  const one = (name, number) => ({
    evaluation_id: `01890000-0000-7000-8000-00000000000${number}`, flow: {name}, status: 'finished', passed: 2, failed: 0, skipped: 0, total: 2, created_at: '2026-01-01T00:00:00Z', cases: [],
  });
  await page.route('**/evaluations?*', route => {
    const isNext = new URL(route.request().url()).searchParams.get('cursor') === 'next';
    return route.fulfill({json: isNext ? {evaluations: [one('issues', 1)]} : {evaluations: [one('another', 2)], next_cursor: 'next'}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/issues?view=evaluations`);
  const older = page.getByRole('button', {name: 'Older evaluations'});
  await older.waitFor();
  assert.equal(await page.getByText('This flow was not evaluated yet').count(), 0);
  await older.click();
  await page.getByRole('region', {name: 'The chosen evaluation'}).getByText('2 passed').waitFor();
  await page.context().close();
});
