// Messages whose answers are lost or late, and what a chat shows when a request of its page fails.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, scroll, until} from './browser.mjs';

let world;
before(async () => { world = await begin({isPatient: true}); });
after(() => world.end());

const conversation = page => page.getByRole('log', {name: 'Conversation'});
const view = chat => world.api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...world.path, chat_id: chat}, query: {before: Number.MAX_SAFE_INTEGER, limit: 200}});
const FAULT = {status: 500, json: {error: {code: 'INTERNAL', message: 'something failed on the server', request_id: 'req-1'}}};
const failureOf = page => page.getByRole('alert').filter({hasText: 'INTERNAL'});

/** The requests by `POST` that a page sends to a path. The first one is answered with a fault: after it arrived, or in its place. */
async function postsOf(page, path, arrives) {
  const sent = [];
  await page.route(`**${path}`, async route => {
    const request = route.request();
    if (request.method() !== 'POST') return route.fallback();
    sent.push({...request.postDataJSON(), key: request.headers()['idempotency-key']});
    if (sent.length > 1) return route.continue();
    if (arrives) await route.fetch();
    return route.fulfill(FAULT);
  });
  return sent;
}
/** A chat at rest, and a page that shows it. */
async function open(goal = 'Show me what you can do') {
  const chat = await world.chat(goal);
  await world.rests(chat);
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText(/tokens read/).waitFor();
  return {chat, page};
}
const box = page => page.locator('.composer textarea');

test('a message whose answer was lost is sent again under its key, and arrives once', async () => {
  const {chat, page} = await open();
  const sent = await postsOf(page, `/chats/${chat}`, true);
  await box(page).fill('Ask me something');
  await page.keyboard.press('Enter');
  await failureOf(page).waitFor();
  // Words that are added are not of the message that failed.
  await page.keyboard.type(' and more');
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await failureOf(page).waitFor({state: 'detached'});
  assert.deepEqual(sent[1], sent[0]);
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === 'and more');
  await conversation(page).locator('.bubble').getByText('Ask me something', {exact: true}).waitFor();
  const {messages, queued} = await view(chat);
  assert.deepEqual([messages.filter(({role}) => role === 'user').length, (queued ?? []).length], [2, 0]);
  await page.context().close();
});

test('the same words that are sent with Enter after a failure are the same message, and other words are another one', async () => {
  const {chat, page} = await open();
  const sent = await postsOf(page, `/chats/${chat}`, false);
  await box(page).fill('Go on');
  await page.keyboard.press('Enter');
  await failureOf(page).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === '');
  assert.deepEqual(sent[1], sent[0]);
  await page.unroute(`**/chats/${chat}`);
  const again = await postsOf(page, `/chats/${chat}`, false);
  await box(page).fill('Go on');
  await page.keyboard.press('Enter');
  await failureOf(page).waitFor();
  await box(page).fill('Something else');
  await failureOf(page).waitFor({state: 'detached'});
  await box(page).fill('Go on');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === '');
  assert.equal(new Set([sent[0].key, again[0].key, again[1].key]).size, 3);
  await page.context().close();
});

test('a chat whose first answer was lost is begun once, and one with another persona is another one', async () => {
  const page = await world.open('chats');
  const sent = await postsOf(page, '/chats', false);
  await box(page).fill('Show me what you can do');
  await page.keyboard.press('Enter');
  await failureOf(page).waitFor();
  await page.getByRole('combobox', {name: 'Persona'}).selectOption('reviewer');
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await page.waitForURL(/chats\/[0-9a-f-]{36}$/);
  assert.equal(sent[1].role, 'reviewer');
  assert.notEqual(sent[1].key, sent[0].key, 'the hub would refuse another body under the same key');
  await page.unroute('**/chats');
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats`);
  const again = await postsOf(page, '/chats', true);
  await page.getByRole('button', {name: 'Ask me something'}).click();
  await failureOf(page).waitFor();
  await page.getByRole('button', {name: 'Ask me something'}).click();
  await page.waitForURL(/chats\/[0-9a-f-]{36}$/);
  assert.deepEqual(again[1], again[0]);
  await page.context().close();
});

test('a message that should interrupt the turn does so when it is tried again', async () => {
  const chat = await world.chat('Count slowly');
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText('I count slowly').waitFor();
  const sent = await postsOf(page, `/chats/${chat}`, false);
  await box(page).fill('Show me what you can do');
  await page.getByRole('button', {name: 'Interrupt'}).click();
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  assert.deepEqual(sent.map(one => one.on_busy), ['interrupt', 'interrupt']);
  await page.context().close();
});

test('two presses of Enter before the page is drawn send one message', async () => {
  const {chat, page} = await open();
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  let sent = 0;
  await page.route(`**/chats/${chat}`, async route => {
    if (route.request().method() !== 'POST') return route.fallback();
    sent++;
    await seen;
    return route.continue();
  });
  await box(page).fill('Show me more');
  await box(page).evaluate(area => {
    for (let times = 0; times < 2; times++) area.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true}));
  });
  await until(() => sent > 0);
  goOn();
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === '');
  await conversation(page).locator('.bubble').getByText('Show me more').waitFor();
  const {messages} = await view(chat);
  assert.deepEqual([sent, messages.filter(({role}) => role === 'user').length], [1, 2]);
  await page.context().close();
});

test('a plan is shown as it is in the version that is approved', async () => {
  const {chat_id: chat} = await world.api.post('/api/v1/workspaces/{workspace_id}/chats', {path: world.path, body: {goal: 'Show me what you can do', mode: 'plan'}});
  await world.rests(chat);
  const {plan_path: path} = await view(chat);
  const at = {path: world.path, query: {path}};
  const info = await world.api.get('/api/v1/workspaces/{workspace_id}/files/by-path', at);
  const page = await world.open();
  // The page asks for the file a moment before another version is written, and for the steps a moment after that.
  await page.route('**/files/by-path?*', route => route.fulfill({json: info}));
  await world.api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {...at, body: {content: '# Plan\n\n- [ ] Another step that nobody has read\n'}});
  const approved = page.waitForRequest('**/approve');
  await page.route('**/approve', route => route.fulfill({status: 202, json: {}}));
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  const approve = page.getByRole('button', {name: 'Approve and build'});
  await approve.waitFor();
  const steps = page.locator('.steps li');
  assert.ok(await steps.count() > 1);
  assert.equal(await steps.filter({hasText: 'Another step'}).count(), 0);
  await approve.click();
  assert.equal((await approved).postDataJSON().v, info.v);
  await page.context().close();
});

test('an older page of a chat that cannot be read is told of, and is read again on demand alone', async () => {
  const chat = await world.chat('Ask me something');
  const page = await world.open();
  const id = at => `01890000-0000-7000-8000-${String(at).padStart(12, '0')}`;
  let [asked, fails] = [0, true];
  await page.route('**/events*', () => undefined);
  await page.route(`**/chats/${chat}?*`, async route => {
    const isOlder = new URL(route.request().url()).searchParams.get('before') === '41';
    if (isOlder) asked++;
    if (isOlder && fails) return route.fulfill(FAULT);
    const {messages: [message], ...whole} = await view(chat);
    const from = isOlder ? 0 : 40;
    const messages = Array.from({length: 40}, (_, at) => ({...message, id: id(from + at), seq: from + at + 1, role: at % 2 ? 'assistant' : 'user', content: `Message ${from + at}`}));
    return route.fulfill({json: {...whole, messages, next_before: isOlder ? null : 41, turn_seq: null, last_seq: 80, waiting_for: [], status: 'idle'}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  await conversation(page).getByText('Message 79', {exact: true}).waitFor();
  const top = () => conversation(page).evaluate(list => list.scrollTop);
  await scroll(conversation(page), 0, () => failureOf(page).isVisible());
  await scroll(conversation(page), 300, async () => await top() > 200);
  await scroll(conversation(page), 0, async () => await top() < 100);
  assert.equal(asked, 1);
  fails = false;
  await failureOf(page).getByRole('button', {name: 'Try again'}).click();
  await scroll(conversation(page), 0, () => conversation(page).getByText('Message 0', {exact: true}).isVisible());
  assert.equal(await failureOf(page).count(), 0);
  await page.context().close();
});
