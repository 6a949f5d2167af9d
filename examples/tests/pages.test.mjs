// The pages of the examples, in Chromium against a real hub.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {readFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {watchChat} from '../../clients/typescript/dist/index.js';
import {begin, PATIENCE, violations} from '../../functions/console/web/tests/browser.mjs';

const at = path => fileURLToPath(new URL(path, import.meta.url));
const TOKEN = 'secret-token-of-the-test';

async function visit(world, url) {
  const page = await (await world.browser.newContext()).newPage();
  page.setDefaultTimeout(PATIENCE);
  page.faults = [];
  page.on('pageerror', error => page.faults.push(error.message));
  await page.goto(url);
  return page;
}
async function say(page, words) {
  await page.getByRole('textbox', {name: 'Message'}).fill(words);
  await page.keyboard.press('Enter');
}
const status = (page, text) => page.getByRole('status').filter({hasText: text}).waitFor();

test('the plain page chats with a hub of another origin, with a token and tickets, and through a crash', async () => {
  const html = await readFile(at('../chat-page/index.html'));
  const files = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(html));
  await new Promise(listening => files.listen(0, '127.0.0.1', listening));
  const origin = `http://127.0.0.1:${files.address().port}`;
  const world = await begin({args: ['--auth-token', TOKEN], token: TOKEN, isPatient: true, env: {BUILDSCALE__SERVER__CORS_ORIGINS: JSON.stringify([origin])}});
  try {
    const page = await visit(world, origin);
    assert.deepEqual(await violations(page), []);
    await page.getByRole('textbox', {name: 'Hub'}).fill(world.hub.url);
    await page.getByRole('textbox', {name: 'Token'}).fill('a wrong one');
    await page.getByRole('button', {name: 'Connect'}).click();
    await status(page, 'This did not work');
    await page.getByRole('textbox', {name: 'Token'}).fill(TOKEN);
    await page.getByRole('button', {name: 'Connect'}).click();
    await say(page, 'ask me');
    await page.getByRole('textbox', {name: /Which colour/}).fill('blue <b>sky</b>');
    await page.getByRole('button', {name: 'Answer'}).click();
    await page.getByText('Your answer was: blue <b>sky</b>').waitFor();
    await say(page, 'run a command');
    await page.getByText('May it call exec?').waitFor();
    await page.getByRole('button', {name: 'Refuse'}).click();
    await page.getByText('It did not run').waitFor();
    assert.equal(await page.locator('.asks').count(), 0, 'nothing is asked that was decided');
    await say(page, 'count slowly');
    await page.getByText('three, four').waitFor();
    await world.hub.kill();
    await world.hub.restart();
    await page.getByText('five, six').waitFor();
    assert.equal(await page.getByText('I count slowly').count(), 1, 'what was said before the crash is void');
    await page.getByRole('button', {name: 'Stop'}).click();
    await status(page, 'Stopped');
    await page.reload();
    await page.getByText('Your answer was').waitFor();
    await status(page, 'Stopped');
    assert.equal(await page.locator('.asks').count(), 0);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.faults, []);
  } finally {
    await world.end();
    files.close();
  }
});

test('the page of the how-to asks, decides and answers, and begins its words anew after a crash', async () => {
  const guide = await readFile(at('../../docs/how-to/web-app.md'), 'utf8');
  let html = '';
  const files = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(html));
  await new Promise(listening => files.listen(0, '127.0.0.1', listening));
  const origin = `http://127.0.0.1:${files.address().port}`;
  const world = await begin({isPatient: true, env: {BUILDSCALE__SERVER__CORS_ORIGINS: JSON.stringify([origin])}});
  html = /```html\n(.*?)```/s.exec(guide)[1].replace('http://127.0.0.1:8686', world.hub.url);
  try {
    const page = await visit(world, origin);
    const log = page.locator('#log');
    const send = async words => {
      await page.locator('#words').fill(words);
      await page.locator('#words').press('Enter');
    };
    await send('ask me');
    await log.locator('input').fill('blue');
    await log.locator('button').click();
    await log.getByText('Your answer was: blue').waitFor();
    await send('run a command');
    await log.getByRole('button', {name: 'declined'}).click();
    await log.getByText('It did not run').waitFor();
    assert.equal(await log.locator('button').count(), 0, 'nothing is asked that was decided or answered');
    await send('count slowly');
    await log.getByText('three, four').waitFor();
    await world.hub.kill();
    await world.hub.restart();
    await log.getByText('continues after a restart').waitFor();
    await log.getByText('five, six').waitFor();
    assert.equal((await log.innerText()).match(/I count slowly/g).length, 1, 'what was said before the crash is void');
    await page.getByRole('button', {name: 'Stop'}).click();
    await log.getByText('stopped: user_cancelled').waitFor();
    await world.api.delete('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: await page.evaluate(() => ({workspace_id: localStorage.workspace, chat_id: localStorage.chat}))});
    await page.reload();
    await log.getByText('The chat is gone').waitFor();
    await send('Show me what you can do');
    await log.getByText('Done. This is what happened').waitFor();
    assert.deepEqual(page.faults, []);
  } finally {
    await world.end();
    files.close();
  }
});

/** The server of Next.js, before the hub; its address. */
async function startNext(world, token) {
  const env = {...process.env, BUILDSCALE_URL: world.hub.url, BUILDSCALE_WORKSPACE: world.workspace, BUILDSCALE_TOKEN: token, NEXT_TELEMETRY_DISABLED: '1'};
  const next = spawn(process.execPath, [at('../nextjs/node_modules/next/dist/bin/next'), 'start', '--port', '0', '--hostname', '127.0.0.1'], {cwd: at('../nextjs'), env});
  let said = '';
  const url = await new Promise((resolve, reject) => {
    const read = piece => {
      said += piece;
      const found = /Local:\s+(http:\S+)/.exec(said);
      if (found && said.includes('Ready')) resolve(found[1]);
    };
    next.stdout.on('data', read);
    next.stderr.on('data', read);
    next.once('exit', code => reject(new Error(`next ended with ${code}: ${said}`)));
  });
  return {url, stop: () => new Promise(ended => { next.once('exit', ended); next.kill(); })};
}

test('useChat in Next.js shows thoughts and calls, asks, resumes after a reload in the middle of a word, and stops', async () => {
  const world = await begin({args: ['--auth-token', TOKEN], token: TOKEN, isPatient: true});
  const next = await startNext(world, TOKEN);
  try {
    const page = await visit(world, next.url);
    await say(page, 'Show me what you can do');
    await page.getByText('Done. This is what happened').waitFor();
    await page.getByText('plan_write ✓').waitFor();
    await page.getByText('Wrote /projects/demo/hello.md', {exact: true}).first().waitFor();
    assert.ok(await page.getByText('Thought').count() > 0);
    await say(page, 'ask me');
    await page.getByRole('textbox', {name: /Which colour/}).fill('blue');
    await page.getByRole('button', {name: 'Answer'}).click();
    await page.getByText('Your answer was: blue').waitFor();
    await say(page, 'run a command');
    await page.getByRole('group', {name: 'May it call exec?'}).waitFor();
    assert.deepEqual(await violations(page), []);
    await page.getByRole('button', {name: 'Refuse'}).click();
    await page.getByText('It did not run').waitFor();
    await say(page, 'count slowly');
    await page.getByText('three, four').waitFor();
    await page.reload();
    await page.getByText('three, four').waitFor();
    await page.getByText('seven, eight').waitFor();
    assert.equal(await page.getByText('I count slowly').count(), 1);
    await page.getByText('Your answer was: blue').waitFor();
    await page.getByRole('button', {name: 'Stop'}).click();
    await page.getByRole('button', {name: 'Send'}).waitFor();
    const {chats} = await world.api.get('/api/v1/workspaces/{workspace_id}/chats', {path: world.path});
    assert.equal(chats.length, 1);
    for await (const {event} of watchChat(world.api, {workspace: world.workspace, chat: chats[0].chat_id}, {after: 0})) if (event === 'stopped') break;
    assert.ok(!(await page.content()).includes(TOKEN));
    for (const path of ['ai-sdk/%2e%2e/chats', 'ai-sdk/chat/%2e%2e%2f%2e%2e/stream', 'chats']) assert.equal((await fetch(`${next.url}/api/hub/${path}`)).status, 404, path);
    assert.deepEqual(page.faults, []);
  } finally {
    await next.stop();
    await world.end();
  }
});
