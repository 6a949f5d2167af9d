import assert from 'node:assert/strict';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {begin, PATIENCE, textsOf, until} from './browser.mjs';

let world;
before(async () => { world = await begin({isPatient: true}); });
after(() => world.end());

const conversation = page => page.getByRole('log', {name: 'Conversation'});
/** The event streams that a page has open. */
function streamsOf(page) {
  const open = new Set();
  page.on('request', request => new URL(request.url()).pathname.endsWith('/events') && open.add(request));
  for (const event of ['requestfinished', 'requestfailed']) page.on(event, request => open.delete(request));
  return open;
}

test('a page has one stream, for its workspace and for the chat that it shows', async () => {
  const [one, other] = [await world.chat('Show me what you can do'), await world.chat('Count slowly')];
  const page = await world.open('files');
  const open = streamsOf(page);
  await page.reload();
  await page.getByRole('link', {name: /Show me what you can do/}).click();
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await page.getByRole('link', {name: /Count slowly/}).click();
  await conversation(page).getByText('I count slowly').waitFor();
  // A new file is told on the same connection.
  await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/projects/new.txt'}, body: {content: 'new'}});
  // The end of the stream before is told a moment after the new one has begun.
  await until(() => open.size === 1);
  const [{url}] = [...open].map(request => ({url: new URL(request.url())}));
  assert.match(url.searchParams.get('actors'), new RegExp(`^chat:${other}(:\\d+)?$`));
  assert.ok(!url.href.includes(one));
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await conversation(page).getByText('You stopped it.').waitFor();
  await page.context().close();
});

test('a change that comes after the lists were read and before the stream is open is shown', async () => {
  const page = await world.open();
  await page.getByRole('heading', {name: 'Workspaces'}).waitFor();
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  let isOpen = false;
  // This stream tells of nothing. So the list is read again because the stream is open, or not at all.
  await page.route(url => url.pathname.endsWith('/events'), async route => {
    await seen;
    await route.fulfill({contentType: 'text/event-stream', body: 'id: 7\nevent: cursor\nretry: 10000000\n\n'});
  });
  let read = 0;
  await page.route(url => url.pathname.endsWith('/chats'), async route => {
    if (isOpen) return route.continue();
    read++;
    return route.fulfill({json: {chats: []}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files`);
  // The list is read at first, and once more when the page begins to follow its workspace. This document has read no other one before.
  await until(() => read === 2);
  await world.chat('Ask me something before the stream');
  const isListed = async () => (await world.api.get('/api/v1/workspaces/{workspace_id}/chats', {path: world.path})).chats.some(({title}) => /before the stream/.test(title));
  await until(isListed);
  isOpen = true;
  goOn();
  await page.getByRole('region', {name: 'Chats'}).getByRole('link', {name: /before the stream/}).waitFor();
  await page.context().close();
});

test('several tabs with several chats leave connections for requests', async () => {
  const chats = await Promise.all(Array.from({length: 5}, () => world.chat('Ask me something')));
  const context = await world.browser.newContext();
  context.setDefaultTimeout(PATIENCE);
  const pages = [];
  for (const chat of chats) {
    const page = await context.newPage();
    await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
    pages.push(page);
  }
  for (const page of pages) await page.getByRole('form', {name: 'The agent asks'}).waitFor();
  // One after another: all of them write down the answer in one file.
  for (const page of pages) {
    await page.getByRole('form', {name: 'The agent asks'}).getByRole('button', {name: 'green'}).click();
    await conversation(page).getByText('Your answer was: green').waitFor();
  }
  await context.close();
});

test('a chat that is deleted elsewhere ends its own events, and the page goes on', async () => {
  const chat = await world.chat('Show me what you can do');
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await world.api.delete('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...world.path, chat_id: chat}});
  await page.getByRole('link', {name: 'Files', exact: true}).click();
  await page.getByRole('heading', {name: 'Files'}).waitFor({state: 'attached'});
  await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path: '/later.txt'}, body: {content: 'later'}});
  await page.locator('.entries').getByText('later.txt').waitFor();
  await page.context().close();
});

test('a file of more than 32 MiB is attached, with its progress', async () => {
  const page = await world.open('chats');
  const folder = await mkdtemp(join(tmpdir(), 'buildscale-'));
  await writeFile(join(folder, 'long.bin'), Buffer.alloc(33 * 1024 * 1024, 'x'));
  const told = textsOf(page, '.composer [role=status]');
  await page.setInputFiles('.composer input[type=file]', join(folder, 'long.bin'));
  await page.locator('.composer .chip').getByText(/long\.bin$/).waitFor();
  const progress = await told;
  assert.ok(progress.some(text => /long\.bin, \d+ %$/.test(text)), progress.join());
  await page.getByRole('textbox', {name: 'Describe a goal'}).fill('Show me what you can do');
  await page.keyboard.press('Enter');
  const link = conversation(page).getByRole('link', {name: /long\.bin/});
  await link.waitFor();
  const path = decodeURIComponent((await link.getAttribute('href')).split('/files')[1].split('?')[0]);
  const info = await world.api.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: world.path, query: {path}});
  assert.equal(info.size, 33 * 1024 * 1024);
  await rm(folder, {recursive: true});
  await page.context().close();
});
