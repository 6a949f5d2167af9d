import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {asksToLeave, begin, drop, violations} from './browser.mjs';

let world;
before(async () => { world = await begin(); });
after(() => world.end());

const write = (path, content) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}, body: {content}});
const read = async path => (await world.api.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: world.path, query: {path}})).text();
const editor = page => page.getByRole('textbox', {name: /Content of/});
/** Puts a text into the editor by keyboard, as a person does. */
async function type(page, text) {
  await editor(page).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.type(text);
}

test('a file is made, written and saved by keyboard, and a draft survives a reload', async () => {
  const page = await world.open('files/projects');
  await page.getByRole('button', {name: 'New file'}).click();
  await page.getByRole('textbox', {name: /Name/}).fill('made.txt');
  // The dialog is open with its name after a reload, and a dialog that is closed gives its draft up.
  await page.reload();
  await page.waitForFunction(() => document.querySelector('dialog input')?.value === 'made.txt');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await page.reload();
  await page.getByRole('button', {name: 'New file'}).click();
  assert.equal(await page.getByRole('textbox', {name: /Name/}).inputValue(), '');
  const name = page.getByRole('textbox', {name: /Name/});
  await name.fill('made.txt');
  // A selection that ends beside the dialog closes nothing.
  const {x, y} = await name.boundingBox();
  await page.mouse.move(x + 20, y + 10);
  await page.mouse.down();
  await page.mouse.move(5, 5);
  await page.mouse.up();
  assert.equal(await name.inputValue(), 'made.txt');
  await page.keyboard.press('Enter');
  await type(page, 'first words');
  await page.getByText('Not saved').waitFor();
  await page.reload();
  await editor(page).getByText('first words').waitFor();
  await editor(page).click();
  await page.keyboard.press('Control+s');
  await page.getByText('Version 2, saved').waitFor();
  assert.equal(await read('/projects/made.txt'), 'first words');
  assert.deepEqual(await violations(page), []);
  await page.context().close();
});

test('a text that is too long for a draft is saved whole, and the browser asks before a reload loses it', async () => {
  const text = `${'x'.repeat(99)}\n`.repeat(5000).slice(0, -3);
  await write('/projects/long.txt', text);
  const page = await world.open('files/projects/long.txt');
  await editor(page).focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('ab');
  await page.getByText('Your draft is kept in this browser').waitFor();
  await page.keyboard.type('cd');
  await page.getByText('too long for a draft').waitFor();
  await asksToLeave(page);
  await page.keyboard.press('Control+s');
  await page.getByText('Version 2, saved').waitFor();
  await asksToLeave(page, false);
  assert.equal(await read('/projects/long.txt'), `abcd${text}`);
  await page.context().close();
});

test('a version of somebody else is shown at once, and never overwritten unseen', async () => {
  await write('/projects/shared.txt', 'one');
  const page = await world.open('files/projects/shared.txt');
  await editor(page).getByText('one').waitFor();
  await write('/projects/shared.txt', 'two');
  await editor(page).getByText('two').waitFor();
  await type(page, 'mine');
  await write('/projects/shared.txt', 'theirs');
  await page.getByRole('alert').getByText('There is a newer version 3').waitFor();
  assert.ok(await page.getByRole('button', {name: 'Save', exact: true}).isDisabled());
  await page.getByRole('button', {name: 'Compare'}).click();
  await page.getByRole('textbox', {name: /Differences of/}).getByText('theirs').waitFor();
  await page.getByRole('button', {name: 'Back to mine'}).click();
  await editor(page).getByText('mine', {exact: true}).waitFor();
  await page.getByRole('button', {name: 'Save mine as version 4'}).click();
  await page.getByText('Version 4, saved').waitFor();
  assert.equal(await read('/projects/shared.txt'), 'mine');
  await page.context().close();
});

test('words that are typed while a save is on its way are kept, and so is the place in the text', async () => {
  await write('/projects/slow.txt', 'one');
  const page = await world.open('files/projects/slow.txt');
  await type(page, 'first');
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  await page.route(url => /\/files\/[0-9a-f-]{36}$/.test(url.pathname), async route => {
    if (route.request().method() === 'PUT') await seen;
    await route.continue();
  });
  await page.keyboard.press('Control+s');
  await page.getByText('Saving…').waitFor();
  await page.keyboard.type(' and more');
  goOn();
  await page.getByText('Not saved').waitFor();
  assert.equal(await read('/projects/slow.txt'), 'first');
  await page.keyboard.type('!');
  await editor(page).getByText('first and more!').waitFor();
  await page.keyboard.press('Control+s');
  await page.getByText('Version 3, saved').waitFor();
  assert.equal(await read('/projects/slow.txt'), 'first and more!');
  await page.keyboard.type('?');
  await editor(page).getByText('first and more!?').waitFor();
  await page.context().close();
});

test('a text that is too long for a draft stays in the editor when somebody else writes a version', async () => {
  const text = `${'x'.repeat(99)}\n`.repeat(5000).slice(0, -3);
  await write('/projects/long too.txt', text);
  const page = await world.open('files/projects/long%20too.txt');
  await editor(page).focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.type('abcd');
  await page.getByText('too long for a draft').waitFor();
  await write('/projects/long too.txt', 'theirs');
  await page.getByRole('button', {name: 'Save mine as version 3'}).click();
  await page.getByText('Version 3, saved').waitFor();
  assert.equal(await read('/projects/long too.txt'), `abcd${text}`);
  await page.context().close();
});

test('a save that comes too late is refused, and the draft is kept', async () => {
  await write('/projects/late.txt', 'one');
  const page = await world.open('files/projects/late.txt');
  await type(page, 'mine');
  // The news of the other version do not arrive, as on a bad network.
  await page.route('**/files/by-path?**', route => route.abort());
  await page.route('**/events', route => route.abort());
  await write('/projects/late.txt', 'theirs');
  await page.unroute('**/files/by-path?**');
  await page.keyboard.press('Control+s');
  await page.getByRole('alert').getByText('There is a newer version 2').waitFor();
  assert.equal(await read('/projects/late.txt'), 'theirs');
  await page.getByRole('button', {name: 'Take theirs'}).click();
  await editor(page).getByText('theirs').waitFor();
  await page.context().close();
});

test('the history shows each version against the one before, and an old one is restored', async () => {
  for (const text of ['alpha\n', 'beta\n', 'gamma\n']) await write('/projects/old.txt', text);
  const page = await world.open('files/projects/old.txt?view=history');
  const versions = page.getByRole('list', {name: 'Versions'});
  await versions.getByRole('button', {name: /Version 2/}).click();
  const differences = page.getByRole('textbox', {name: /Differences of/});
  await differences.getByText('alpha').waitFor();
  await page.reload();
  await differences.getByText('beta').waitFor();
  assert.deepEqual(await violations(page), []);
  // Its address leads another person there.
  const other = await world.open();
  await other.goto(page.url());
  await other.getByRole('heading', {name: 'Version 2 against version 1'}).waitFor();
  await other.context().close();
  await page.getByRole('button', {name: 'Restore version 2'}).click();
  await versions.getByRole('button', {name: /Version 4/}).waitFor();
  await page.getByRole('heading', {name: 'Version 4 against version 3'}).waitFor();
  assert.equal(await read('/projects/old.txt'), 'beta\n');
  await page.context().close();
});

test('a file goes into the trash and comes back', async () => {
  await write('/projects/away.txt', 'away');
  const page = await world.open('files/projects/away.txt');
  await page.getByRole('button', {name: 'Move to the trash'}).click();
  await page.getByRole('dialog').getByRole('button', {name: 'Move to the trash'}).click();
  await page.getByRole('heading', {name: 'projects'}).waitFor();
  await page.getByRole('link', {name: 'Trash'}).click();
  await page.getByRole('button', {name: 'Restore /projects/away.txt'}).click();
  await page.getByText('The trash is empty').waitFor();
  assert.equal(await read('/projects/away.txt'), 'away');
  await page.context().close();
});

test('a file is renamed, uploaded and found in its folder', async () => {
  await write('/projects/name.txt', 'name');
  const page = await world.open('files/projects/name.txt');
  await page.getByRole('button', {name: 'Move or rename'}).click();
  const to = page.getByRole('textbox', {name: /New path/});
  await to.fill('/projects/other name.txt');
  await page.reload();
  assert.equal(await to.inputValue(), '/projects/other name.txt');
  await to.press('Enter');
  await page.getByRole('heading', {name: 'other name.txt'}).waitFor();
  await page.getByRole('navigation', {name: 'Path'}).getByRole('link', {name: 'projects'}).click();
  await page.setInputFiles('input[type=file]', {name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('chosen')});
  await page.locator('.entries').getByText('chosen.txt').waitFor();
  await drop(page.locator('.page.folder'), 'dropped.txt', 'dropped');
  await page.locator('.entries').getByText('dropped.txt').waitFor();
  assert.equal(await read('/projects/chosen.txt'), 'chosen');
  assert.equal(await read('/projects/dropped.txt'), 'dropped');
  await page.context().close();
});

test('a file with more versions, a trash with more files and a folder with more entries than are shown tell of it', async () => {
  const then = '2026-01-01T00:00:00Z';
  for (const text of ['one', 'two']) await write('/projects/many.txt', text);
  const page = await world.open();
  const paged = (address, key, one) => page.route(address, route => {
    const isNext = new URL(route.request().url()).searchParams.get('cursor') === 'next';
    return route.fulfill({json: isNext ? {[key]: [one(1)]} : {[key]: [one(2)], next_cursor: 'next'}});
  });
  const info = number => ({file_id: `01890000-0000-7000-8000-${String(number).padStart(12, '0')}`, kind: 'file', name: `${number}.txt`, path: `/projects/${number}.txt`, v: 1, size: 1, author: 'agent:assistant', updated_at: then});
  await paged('**/versions?*', 'versions', v => ({v, author: 'agent:assistant', at: then}));
  await paged('**/files/trash?*', 'files', number => ({at: then, by: 'agent:assistant', info: info(number)}));
  await page.route(url => url.pathname.endsWith('/files') && url.searchParams.get('path') === '/projects', route => route.fulfill({json: {entries: Array.from({length: 2000}, (_, at) => info(at))}}));
  const at = place => page.goto(`${world.hub.url}/#/w/${world.workspace}/${place}`);
  const more = () => page.getByRole('button', {name: 'More', exact: true}).click();
  await at('files/projects/many.txt?view=history');
  const versions = page.getByRole('list', {name: 'Versions'});
  await versions.getByRole('button', {name: /Version 2/}).waitFor();
  await more();
  await versions.getByRole('button', {name: /Version 1/}).waitFor();
  await at('files?view=trash');
  await page.getByText('/projects/2.txt').waitFor();
  await more();
  await page.getByText('/projects/1.txt').waitFor();
  await at('files/projects');
  await page.getByText('A folder lists at most 2,000 entries').waitFor();
  await page.context().close();
});

test('a key that the editor takes is no command of the page', async () => {
  await write('/projects/lines.txt', 'first line\nsecond line');
  const page = await world.open('files/projects/lines.txt');
  await editor(page).getByText('first line').waitFor();
  await editor(page).focus();
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('Control+Shift+K');
  await editor(page).getByText('first line').waitFor({state: 'detached'});
  await editor(page).getByText('second line').waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  await page.keyboard.press('Control+k');
  await page.getByRole('listbox', {name: 'Results'}).waitFor();
  await page.context().close();
});

test('no text holds the page up', async () => {
  const texts = {opened: '[a]('.repeat(20_000), quoted: `${'>'.repeat(20_000)} deep`, listed: `${'- '.repeat(20_000)}deep`, emphasised: '*a _b '.repeat(20_000)};
  for (const [name, text] of Object.entries(texts)) {
    await write(`/projects/${name}.md`, `# Title of ${name}\n\n${text}\n`);
    const page = await world.open(`files/projects/${name}.md`);
    await page.locator('.markdown').getByText(`Title of ${name}`).waitFor();
    await page.context().close();
  }
});

test('a long rule, nested lists and quotes are drawn', async () => {
  const nested = Array.from({length: 12}, (_, at) => `${'  '.repeat(at)}- level ${at} **bold ${at}**`).join('\n');
  await write('/projects/drawn.md', `# Drawn\n\n${'- '.repeat(60)}\n\n${nested}\n\n> > > quoted\n`);
  const page = await world.open('files/projects/drawn.md');
  const text = page.locator('.markdown');
  await text.getByRole('heading', {name: 'Drawn'}).waitFor();
  assert.deepEqual([await text.locator('hr').count(), await text.locator('ul').count(), await text.locator('li strong').count()], [1, 12, 12]);
  assert.equal(await text.locator('blockquote blockquote blockquote').count(), 1);
  await page.context().close();
});

test('the content of a file can run nothing', async () => {
  const hostile = [
    '# Title', '<script>window.hit = 1</script>', '<img src="x" onerror="window.hit = 2">', '[click](javascript:window.hit=3)', '![pixel](https://example.org/pixel.png)',
    '<iframe srcdoc="<script>parent.hit = 4</script>"></iframe>', '[fine](https://example.org/)', '`<b>code</b>`',
  ].join('\n\n');
  await write('/projects/hostile.md', hostile);
  const page = await world.open('files/projects/hostile.md');
  const asked = [];
  page.on('request', request => asked.push(request.url()));
  const text = page.locator('.markdown');
  await text.getByRole('heading', {name: 'Title'}).waitFor();
  await text.getByText('<script>window.hit = 1</script>').waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await text.locator('script, img, iframe, [onerror]').count(), 0);
  assert.deepEqual(await text.locator('a').evaluateAll(links => links.map(link => link.href)), ['https://example.org/pixel.png', 'https://example.org/']);
  assert.ok(asked.every(url => url.startsWith(world.hub.url)), asked.join());
  await page.context().close();
});
