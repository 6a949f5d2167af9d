import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {asksToLeave, begin, until, violations} from './browser.mjs';

const TOKEN = 'token-of-the-stories-of-the-console';
let world, chat;
before(async () => {
  world = await begin({args: ['--auth-token', TOKEN], token: TOKEN});
  chat = await world.chat('Show me what you can do');
  // The palette finds the words of its file, and its pages have what it used.
  await world.rests(chat);
});
after(() => world.end());

/** Clicks the button, and then the one of the dialog that asks first. */
async function confirmed(page, button, answer) {
  await page.getByRole('button', {name: button}).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  assert.deepEqual(await violations(page), []);
  await dialog.getByRole('button', {name: answer, exact: true}).click();
}

test('a person signs in with a token, goes on where they were, and signs out', async () => {
  const page = await world.open('chats');
  const field = page.getByLabel('Token');
  await field.fill('wrong');
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByRole('alert').getByText('does not accept this token').waitFor();
  assert.deepEqual(await violations(page), []);
  await field.fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  // A token that expires meanwhile is asked for anew.
  await page.getByRole('link', {name: 'Usage'}).evaluate(link => {
    localStorage.setItem('buildscale.token', 'expired');
    link.click();
  });
  await field.fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  await page.getByRole('button', {name: 'Sign out'}).click();
  await field.waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem('buildscale.token')), null);
  await page.context().close();
});

test('a link with a token signs in when the person agrees, and leaves nothing in the address', async () => {
  const page = await world.open();
  // From elsewhere: the page reads the link when it is loaded, and takes it out of the address.
  await page.goto('about:blank');
  await page.goto(`${world.hub.url}/#/sign-in?token=${TOKEN}`);
  await page.getByText('Sign in with it only if you know its sender').waitFor();
  assert.ok(!page.url().includes(TOKEN));
  assert.equal(await page.evaluate(() => localStorage.getItem('buildscale.token')), null);
  await page.getByRole('button', {name: 'Sign in'}).click();
  await page.getByRole('heading', {name: 'Workspaces'}).waitFor();
  await page.context().close();
});

test('a first visit makes a workspace, and another one shows both', async () => {
  const page = await world.open('', {token: TOKEN});
  await page.getByRole('heading', {name: 'Workspaces'}).waitFor();
  const name = page.getByRole('textbox', {name: 'Name of a new workspace'});
  await name.fill('Second');
  await page.reload();
  assert.equal(await name.inputValue(), 'Second');
  await name.press('Enter');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.getByRole('combobox', {name: 'Workspace'}).selectOption({label: 'Stories'});
  await page.getByRole('link', {name: /Show me what you can do/}).waitFor();
  await page.context().close();
});

test('everything is reached by keyboard with the palette, which searches files and conversations', async () => {
  const page = await world.open('chats', {token: TOKEN});
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('listbox', {name: 'Results'}).waitFor();
  await page.keyboard.type('usage');
  await page.getByRole('option', {selected: true}).filter({hasText: 'Go to usage'}).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('listbox', {name: 'Results'}).waitFor();
  await page.keyboard.type('Hello from BuildScale');
  await page.getByRole('option').filter({hasText: 'hello.md'}).first().waitFor();
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await page.context().close();
});

test('a schedule is made, run now, paused, resumed and removed', async () => {
  const page = await world.open('schedules', {token: TOKEN});
  await page.getByRole('button', {name: 'New schedule'}).click();
  await page.getByRole('textbox', {name: 'Name'}).fill('Brief');
  await page.getByRole('textbox', {name: /Goal/}).fill('Show me what you can do');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', {name: 'Make it'}).click();
  await page.getByText(/Each day, \d\d:\d\d .*Show me what you can do/).waitFor();
  await page.getByRole('button', {name: 'Run Brief now'}).click();
  await page.getByRole('button', {name: 'Pause Brief'}).click();
  await page.getByText('paused', {exact: true}).waitFor();
  await page.getByRole('button', {name: 'Resume Brief'}).click();
  await page.getByRole('button', {name: 'Pause Brief'}).waitFor();
  await page.getByRole('button', {name: 'Remove Brief'}).click();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await page.getByRole('button', {name: 'Pause Brief'}).waitFor();
  await confirmed(page, 'Remove Brief', 'Remove');
  await page.getByText('Nothing begins by itself').waitFor();
  await page.getByRole('button', {name: 'New schedule'}).click();
  await page.getByRole('textbox', {name: 'Name'}).fill('Morning');
  await page.getByRole('combobox', {name: 'What begins'}).selectOption('My daily brief');
  assert.equal(await page.getByRole('textbox', {name: /Goal/}).count(), 0);
  await page.getByRole('button', {name: 'Make it'}).click();
  await page.getByText(/Each day, \d\d:\d\d .*the daily brief/).waitFor();
  await confirmed(page, 'Remove Morning', 'Remove');
  await page.getByText('Nothing begins by itself').waitFor();
  await page.context().close();
});

test('a key is made, shown once, opens the console, and is revoked', async () => {
  const page = await world.open('people', {token: TOKEN});
  await page.getByRole('button', {name: 'New key'}).click();
  await page.getByRole('textbox', {name: 'Name'}).fill('nightly');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', {name: 'Make it'}).click();
  const key = await page.getByLabel('The key').innerText();
  await asksToLeave(page);
  await page.keyboard.press('Escape');
  await asksToLeave(page, false);
  const other = await world.open('chats', {token: key});
  await other.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await confirmed(page, 'Revoke nightly', 'Revoke');
  await page.getByText('You have none.').waitFor();
  await other.reload();
  await other.getByRole('heading', {name: 'Sign in'}).waitFor();
  await Promise.all([page.context().close(), other.context().close()]);
});

test('a list with more than it shows offers the rest, and a role that was picked is shown at once', async () => {
  const page = await world.open('people', {token: TOKEN});
  const then = '2026-01-01T00:00:00Z';
  let role = 'viewer';
  const member = number => ({user_id: `01890000-0000-7000-8000-00000000000${number}`, subject: `p${number}@example.org`, role, added_at: then});
  const run = number => ({task_id: `01890000-0000-7000-8000-0000000000a${number}`, flow: {name: `run-${number}`}, phase: 'finished', status: 'success', created_at: then});
  const paged = (address, key, one) => page.route(address, route => {
    const isNext = new URL(route.request().url()).searchParams.get('cursor') === 'next';
    return route.fulfill({json: isNext ? {[key]: [one(2)]} : {[key]: [one(1)], next_cursor: 'next'}});
  });
  await paged('**/members?*', 'members', member);
  await paged('**/tasks?*', 'tasks', run);
  let goOn;
  const held = new Promise(done => { goOn = done; });
  await page.route('**/members/*', async route => {
    if (route.request().method() !== 'PATCH') return route.continue();
    await held;
    role = 'editor';
    return route.fulfill({json: member(1)});
  });
  await page.reload();
  const first = page.getByRole('combobox', {name: 'Role of p1@example.org'});
  await first.waitFor();
  assert.equal(await page.getByRole('combobox', {name: 'Role of p2@example.org'}).count(), 0);
  await page.getByRole('button', {name: 'More', exact: true}).click();
  await page.getByRole('combobox', {name: 'Role of p2@example.org'}).waitFor();
  await first.selectOption('editor');
  await until(async () => await first.inputValue() === 'editor');
  const again = page.waitForResponse('**/members?*');
  goOn();
  await again;
  await until(async () => await first.inputValue() === 'editor');
  await page.getByRole('link', {name: 'Flows', exact: true}).click();
  await page.getByRole('link', {name: /run-1/}).waitFor();
  await page.getByRole('button', {name: 'More', exact: true}).click();
  await page.getByRole('link', {name: /run-2/}).waitFor();
  await page.context().close();
});

test('usage and health tell what the hub knows', async () => {
  const page = await world.open('usage', {token: TOKEN});
  await page.getByText('Tokens read').waitFor();
  await page.getByRole('table').first().getByText('the default model').waitFor();
  await page.getByRole('region', {name: 'People'}).getByText('operator').waitFor();
  await page.getByRole('link', {name: 'Health'}).click();
  await page.locator('.badge.good', {hasText: 'ready'}).waitFor();
  await page.getByText('demo', {exact: true}).waitFor();
  const whole = page.getByRole('region', {name: 'The hub as a whole'});
  await whole.getByText(/^0 dead letters$/).waitFor();
  await whole.getByText(/^[1-9]\d* open$/).waitFor();
  await page.context().close();
});

test('a missing chat, file, flow or workspace is told with the way on', async () => {
  const gone = '01890000-0000-7000-8000-000000000000';
  const page = await world.open(`chats/${gone}`, {token: TOKEN});
  await page.getByRole('heading', {name: 'This chat is not there'}).waitFor();
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files/nowhere.txt`);
  await page.getByRole('heading', {name: 'There is nothing at this path'}).waitFor();
  // A percent sign that encodes nothing, also as the first place of a page.
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files/100%`);
  await page.getByText('/100% was moved or removed').waitFor();
  await page.reload();
  await page.getByText('/100% was moved or removed').waitFor();
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/nowhere`);
  await page.getByRole('heading', {name: 'This flow is not there'}).waitFor();
  await page.getByRole('link', {name: 'To the flows'}).click();
  await page.getByRole('heading', {name: 'Flows', exact: true}).waitFor();
  await page.goto(`${world.hub.url}/#/w/${gone}/chats`);
  await page.getByRole('heading', {name: 'This workspace is not yours'}).waitFor();
  await page.context().close();
});

test('a viewer is offered nothing but reading, and is told the missing right', async () => {
  const secret = 'a secret of at least thirty-two characters, for tests';
  const people = await begin({env: {BUILDSCALE__AUTH__SECRET: secret}, owner: 'ann@example.org'});
  try {
    const token = people.tokenOf('bob@example.org');
    await people.api.post('/api/v1/workspaces/{workspace_id}/members', {path: people.path, body: {subject: 'bob@example.org', role: 'viewer'}});
    const asked = await people.chat('Run a command');
    const page = await people.open(`chats/${asked}`, {token});
    await page.getByText('Deciding it needs the right to approve').waitFor();
    await page.getByText('Writing in it needs the right to converse').waitFor();
    for (const name of ['Allow once', 'Rename this chat', 'Delete this chat']) assert.equal(await page.getByRole('button', {name}).count(), 0, name);
    const question = await people.chat('Ask me something');
    const asks = await people.open(`chats/${question}`, {token});
    const card = asks.getByRole('region', {name: 'The agent asks'});
    await card.getByText('Answering it needs the right to converse').waitFor();
    assert.equal(await card.getByRole('button').count(), 0);
    assert.deepEqual(await violations(asks), []);
    await asks.context().close();
    const owner = await people.open('people', {token: people.tokenOf('ann@example.org')});
    await owner.getByRole('combobox', {name: 'Role of bob@example.org'}).waitFor();
    await owner.getByRole('button', {name: 'Add a member'}).click();
    const subject = owner.getByRole('textbox', {name: /Name at the issuer/});
    await subject.fill('cy@example.org');
    await owner.reload();
    assert.equal(await subject.inputValue(), 'cy@example.org');
    await owner.getByRole('button', {name: 'Add', exact: true}).click();
    await owner.getByRole('combobox', {name: 'Role of cy@example.org'}).selectOption('member');
    await until(async () => {
      const {members} = await people.api.get('/api/v1/workspaces/{workspace_id}/members', {path: people.path});
      return members.some(({subject, role}) => subject === 'cy@example.org' && role === 'member');
    });
    await confirmed(owner, 'Remove cy@example.org', 'Remove');
    await owner.locator('.list-row').getByText('cy@example.org', {exact: true}).waitFor({state: 'detached'});
    await owner.context().close();
    await page.getByRole('link', {name: 'New chat'}).first().click();
    await page.getByRole('heading', {name: 'You can look around here'}).waitFor();
    assert.deepEqual(await violations(page), []);
    await page.context().close();
  } finally {
    await people.end();
  }
});

test('the title names what the page shows, and the way back from the first page leads out of the console', async () => {
  const page = await world.open(`chats/${chat}`, {token: TOKEN});
  const isCalled = name => page.waitForFunction(title => document.title === title, name);
  await isCalled('Show me what you can do · Chats · Stories · BuildScale');
  await page.getByRole('navigation', {name: 'Workspace'}).getByRole('link', {name: 'Chats', exact: true}).click();
  await isCalled('Chats · Stories · BuildScale');
  await page.getByRole('link', {name: 'Health'}).click();
  await isCalled('Health · Stories · BuildScale');
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  await isCalled('Show me what you can do · Chats · Stories · BuildScale');
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/files/projects/demo/hello.md`);
  await isCalled('hello.md · Files · Stories · BuildScale');
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/flows/plan_and_execute`);
  await isCalled('plan_and_execute · Flows · Stories · BuildScale');
  await page.goto(`${world.hub.url}/health`);
  await page.goto(`${world.hub.url}/`);
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.goBack();
  assert.equal(new URL(page.url()).pathname, '/health');
  await page.context().close();
});

test('a dialog begins in its first field, and gives the focus back to the button that opened it', async () => {
  const page = await world.open(`chats/${chat}`, {token: TOKEN});
  const button = page.getByRole('button', {name: 'Rename this chat'});
  const hasFocus = selector => page.waitForFunction(selector => document.activeElement?.matches(selector), selector);
  await button.focus();
  await page.keyboard.press('Enter');
  await hasFocus('dialog input');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('Show me what you can do');
  // The dialog is taken out of the page, and not closed, when the answer is there.
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  await hasFocus('[aria-label="Rename this chat"]');
  // One that asks before something is gone offers no field, and its first button closes it.
  await page.getByRole('button', {name: 'Delete this chat'}).focus();
  await page.keyboard.press('Enter');
  await hasFocus('dialog [aria-label="Close"]');
  await page.keyboard.press('Escape');
  await hasFocus('[aria-label="Delete this chat"]');
  await page.context().close();
});

const PLACES = ['chats', 'chats/CHAT', 'files', 'files/projects/demo/hello.md', 'files/projects/demo/hello.md?view=edit', 'files?view=trash', 'flows', 'flows/plan_and_execute', 'sandbox', 'schedules', 'webhooks', 'people', 'usage', 'health'];
for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390]]) {
  test(`each page is accessible and fits: ${theme}, ${width} pixels wide`, async () => {
    const page = await world.open('chats', {token: TOKEN, theme, width, height: 780});
    for (const place of PLACES) {
      // Once this is over the page before is not in the document any more.
      await page.evaluate(to => new Promise(done => {
        if (location.hash === to) return done();
        addEventListener('hashchange', () => setTimeout(done), {once: true});
        location.hash = to;
      }), `#/w/${world.workspace}/${place.replace('CHAT', chat)}`);
      await page.waitForFunction(() => document.querySelector('main h1, main h2, main .markdown') && !document.querySelector('.loading'));
      assert.deepEqual(await violations(page), [], place);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${place} is ${over} pixels too wide`);
    }
    if (width < 500) {
      await page.getByRole('button', {name: 'Menu'}).click();
      await page.getByRole('link', {name: 'Flows'}).click();
      await page.getByRole('heading', {name: 'Flows'}).waitFor();
    }
    await page.context().close();
  });
}
