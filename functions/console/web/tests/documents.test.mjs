import assert from 'node:assert/strict';
import {mkdir, mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {begin, looksRight, textsOf, violations} from './browser.mjs';

let world;
before(async () => { world = await begin(); });
after(() => world.end());

const put = (path, body) => world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: world.path, query: {path}, body});

/** Its second line tells programs that the file is no text. */
const HEAD = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n';
/** A PDF of one page with this text. */
function pdf(text) {
  const content = `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [4 0 R] /Count 1 >>',
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  ];
  let file = HEAD;
  let table = 'xref\n0 6\n0000000000 65535 f \n';
  objects.forEach((object, at) => {
    table += `${String(file.length).padStart(10, '0')} 00000 n \n`;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
  });
  return Buffer.from(`${file}${table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF\n`, 'latin1');
}

test('a document shows how far it is, and then its text, without a reload', async () => {
  const page = await world.open('files/data');
  await page.getByText('This folder is empty').waitFor();
  await put('/data/report.pdf', pdf('The quarter went well.'));
  const row = page.locator('.entries li').filter({hasText: 'report.pdf'});
  await row.getByText('readable', {exact: true}).waitFor();
  assert.deepEqual(await violations(page), []);
  await row.getByRole('link').click();
  await page.locator('.markdown').getByText('The quarter went well.').waitFor();
  await page.getByRole('link', {name: 'Edit'}).click();
  await page.getByText('This file is not shown here').waitFor();
  await page.getByRole('link', {name: 'Read'}).click();
  await put('/data/report.pdf', pdf('The next quarter went better.'));
  await page.locator('.markdown').getByText('The next quarter went better.').waitFor();
  await page.context().close();
});

test('a document that cannot be read says why', async () => {
  await put('/data/broken.pdf', Buffer.from(`${HEAD}this is no PDF`, 'latin1'));
  const page = await world.open('files/data/broken.pdf');
  await page.getByText('The document could not be read').waitFor();
  await page.locator('.code').getByText('damaged').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.context().close();
});

test('words are read from the side of their first letter, and code from the left', async () => {
  await put('/projects/right.md', 'مرحبا project X!\n\n- أولا\n\n> ثانيا\n\n- ثالثا `a.rs`\n\nEnglish (مرحبا).\n');
  const page = await world.open('files/projects/right.md');
  const text = page.locator('.markdown');
  await text.waitFor();
  const directions = selector => text.locator(selector).evaluateAll(all => all.map(one => getComputedStyle(one).direction));
  assert.deepEqual(await directions(':scope > *'), ['rtl', 'rtl', 'rtl', 'rtl', 'ltr']);
  assert.deepEqual(await directions('code'), ['ltr']);
  const chat = await world.chat('مرحبا, run a plan!');
  // So high that all rows are in the document.
  const other = await world.open(`chats/${chat}`, {height: 4000});
  await other.getByText(/tokens read/).waitFor();
  const [first, last] = await other.locator('.bubble').evaluate(({firstChild: text}) => [0, text.length - 1].map(at => {
    const range = document.createRange();
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().left;
  }));
  assert.ok(last < first, 'the end of the words is on the left');
  await Promise.all([page, other].map(one => one.context().close()));
});

test('a file that is longer than one request may be is uploaded, and its progress is told', async () => {
  const page = await world.open('files/projects');
  const told = textsOf(page, '.notice[role=status]');
  const folder = await mkdtemp(join(tmpdir(), 'story-'));
  const long = Buffer.alloc(34 * 1024 * 1024, 'a long file ');
  await writeFile(join(folder, 'long.bin'), long);
  await page.setInputFiles('input[type=file]', join(folder, 'long.bin'));
  await page.locator('.entries').getByText('long.bin').waitFor();
  const {size, v} = await world.api.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/projects/long.bin'}});
  assert.deepEqual([size, v], [long.length, 1]);
  await rm(folder, {recursive: true});
  const progress = await told;
  assert.equal(progress[0], 'Uploading long.bin, 0 %');
  assert.equal(progress.at(-1), 'Uploading long.bin, 100 %');
  await page.context().close();
});

test('a folder is uploaded with all that is in it, chosen or dropped', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'story-'));
  try {
    await mkdir(join(folder, 'site/pages'), {recursive: true});
    await writeFile(join(folder, 'site/index.md'), '# Index');
    await writeFile(join(folder, 'site/pages/a b.md'), '# Page');
    const page = await world.open('files/projects');
    await page.setInputFiles('input[webkitdirectory]', join(folder, 'site'));
    await page.locator('.entries').getByText('site', {exact: true}).waitFor();
    // The folder is shown with the first file of it; the others are still on their way.
    await page.locator('.notice[role=status]').waitFor({state: 'detached'});
    const read = async path => (await world.api.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: world.path, query: {path}})).text();
    assert.deepEqual([await read('/projects/site/index.md'), await read('/projects/site/pages/a b.md')], ['# Index', '# Page']);
    const dropped = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['dropped'], 'dropped.txt'));
      return transfer;
    });
    await page.dispatchEvent('.folder', 'drop', {dataTransfer: dropped});
    await page.locator('.entries').getByText('dropped.txt').waitFor();
    assert.equal(await read('/projects/dropped.txt'), 'dropped');
    await page.context().close();
  } finally {
    await rm(folder, {recursive: true});
  }
});

test('documents look right in both themes and on a phone', async () => {
  await put('/data/table.csv', new TextEncoder().encode('name,price\npen,1\nbook,2\n'));
  await looksRight(world, 'files/data', page => page.locator('.entries li').filter({hasText: 'table.csv'}).getByText('readable').waitFor());
  await looksRight(world, 'files/data/table.csv', page => page.locator('.markdown table').waitFor());
});
