import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';

let world;
before(async () => { world = await begin({isPatient: true}); });
after(() => world.end());

const log = page => page.getByRole('log', {name: 'Commands'});
const run = async (page, command) => {
  await page.getByRole('textbox', {name: 'Command'}).fill(command);
  await page.keyboard.press('Enter');
};

test('a person runs commands, and a reload neither loses one nor runs it twice', async () => {
  await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/projects/a.txt'}, body: {content: 'alpha'}});
  const page = await world.open('sandbox');
  await run(page, 'cat projects/a.txt; echo; echo $((40 + 2))');
  await log(page).getByText(/alpha\n42/).waitFor();
  await page.getByRole('textbox', {name: 'Command'}).fill('echo not yet');
  await page.reload();
  await log(page).getByText(/alpha\n42/).waitFor();
  assert.equal(await page.getByRole('textbox', {name: 'Command'}).inputValue(), 'echo not yet');
  // One that runs while the page is loaded anew, also on a busy machine.
  await run(page, 'sleep 10; date +%s%N');
  await log(page).getByText('running').waitFor();
  await page.reload();
  const article = log(page).getByRole('article', {name: /^sleep/});
  await article.getByText(/^\d{19}/).waitFor();
  assert.equal(await article.count(), 1);
  await run(page, 'exit 3');
  await log(page).getByRole('article', {name: 'exit 3'}).getByText('failed').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.getByRole('textbox', {name: 'Command'}).inputValue(), 'exit 3');
  await page.context().close();
});

test('agents at work are listed, and stopped from there', async () => {
  await world.chat('Count slowly');
  const page = await world.open('sandbox');
  const list = page.getByRole('region', {name: 'Agents at work'});
  await list.getByRole('link', {name: 'Count slowly'}).waitFor();
  await list.getByRole('button', {name: 'Stop Count slowly'}).click();
  await list.waitFor({state: 'detached'});
  await page.context().close();
});

test('the sandbox looks right in both themes and on a phone', async () => {
  await looksRight(world, 'sandbox', async page => {
    await run(page, 'echo a_rather_long_line_of_output_without_any_blank_that_a_narrow_page_could_break_it_at_so_it_has_to_break_within');
    await log(page).getByText(/^a_rather_long_line/).waitFor();
  });
});
