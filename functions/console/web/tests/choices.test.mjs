// The choices of a person: the model and the persona, where a fork goes on, the look of the page, and a command of the palette.
import assert from 'node:assert/strict';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {begin} from './browser.mjs';

let world;
let folder;
const began = new Date();
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'choices-'));
  const script = join(folder, 'script.yaml');
  await writeFile(script, 'rules:\n- steps: [{text: "So says the script."}]\n');
  world = await begin({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
});
after(async () => {
  await world.end();
  await rm(folder, {recursive: true, force: true});
});

const conversation = page => page.getByRole('log', {name: 'Conversation'});
const view = chat => world.api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...world.path, chat_id: chat}});
/** Waits until a picker shows this. */
const shows = (page, label, value) => page.waitForFunction(([label, value]) => document.querySelector(`select[aria-label="${label}"]`)?.value === value, [label, value]);
const idOf = page => page.url().split('/').at(-1);
async function say(page, box, words) {
  await page.getByRole('textbox', {name: box}).fill(words);
  await page.keyboard.press('Enter');
}

test('the persona and the model of a chat are chosen, survive a reload, and the next turn has another model', async () => {
  const page = await world.open('chats');
  await page.getByRole('combobox', {name: 'Persona'}).selectOption('reviewer');
  await page.getByRole('combobox', {name: 'Model'}).selectOption('scripted/demo');
  await page.reload();
  await shows(page, 'Persona', 'reviewer');
  await shows(page, 'Model', 'scripted/demo');
  await say(page, 'Describe a goal', 'Show me what you can do');
  await page.waitForURL(/chats\/[0-9a-f-]{36}$/);
  await conversation(page).getByText('No model is configured').first().waitFor();
  await conversation(page).getByText(/tokens read/).waitFor();
  const made = await view(idOf(page));
  assert.deepEqual([made.role, made.model], ['reviewer', 'scripted/demo']);
  // The choice is on its way while the message is sent: the message waits for it.
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  await page.route(`**/chats/${idOf(page)}`, async route => {
    if (route.request().method() === 'PATCH') await seen;
    await route.continue();
  });
  await page.getByRole('combobox', {name: 'Model'}).selectOption('scripted/script');
  await say(page, 'Write a message', 'And now?');
  goOn();
  await conversation(page).getByText('So says the script.').waitFor();
  assert.equal((await view(idOf(page))).model, 'scripted/script');
  await page.context().close();
});

test('a message is not sent when the choice of its model fails, and is kept', async () => {
  const chat = await world.chat('What is new?');
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText(/tokens read/).waitFor();
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  const error = {code: 'UNPROCESSABLE', message: 'this model is not configured', hint: 'choose another one', request_id: 'req-1'};
  await page.route(`**/chats/${chat}`, async route => {
    if (route.request().method() !== 'PATCH') return route.continue();
    await seen;
    await route.fulfill({status: 422, contentType: 'application/json', body: JSON.stringify({error})});
  });
  await page.getByRole('combobox', {name: 'Model'}).selectOption('scripted/demo');
  await say(page, 'Write a message', 'And now?');
  goOn();
  const failure = page.getByRole('alert').filter({hasText: 'The message was not sent'});
  await failure.waitFor();
  await page.getByRole('alert').getByText('this model is not configured').waitFor();
  await shows(page, 'Model', 'scripted/script');
  assert.equal(await page.getByRole('textbox', {name: 'Write a message'}).inputValue(), 'And now?');
  assert.equal((await view(chat)).turns, 1);
  // The picker shows the model that it is for now.
  await failure.getByRole('button', {name: 'Try again'}).click();
  await conversation(page).locator('.bubble').getByText('And now?').waitFor();
  await page.context().close();
});

test('a title, a model and a mode that another client chooses are shown at once', async () => {
  const chat = await world.chat('What is new?');
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText(/tokens read/).waitFor();
  const choose = body => world.api.patch('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...world.path, chat_id: chat}, body});
  await choose({title: 'Named elsewhere'});
  await page.getByRole('heading', {name: 'Named elsewhere'}).waitFor();
  await choose({model: 'scripted/demo'});
  await shows(page, 'Model', 'scripted/demo');
  await choose({mode: 'plan'});
  await shows(page, 'Mode', 'plan');
  await page.context().close();
});

test('a fork goes on from a turn in another chat', async () => {
  const page = await world.open('chats');
  await say(page, 'Describe a goal', 'First');
  await page.waitForURL(/chats\/[0-9a-f-]{36}$/);
  await conversation(page).getByText('So says the script.').waitFor();
  const first = idOf(page);
  await conversation(page).getByRole('button', {name: 'Fork', exact: true}).first().click();
  await page.waitForURL(url => !url.href.includes(first));
  await conversation(page).getByText('First', {exact: true}).waitFor();
  await say(page, 'Write a message', 'Second');
  await conversation(page).getByText('So says the script.').nth(1).waitFor();
  assert.equal((await view(idOf(page))).forked_from.chat_id, first);
  assert.equal((await view(first)).turns, 1, 'the chat itself stays as it was');
  await page.context().close();
});

test('the look is light, dark or that of the system, and stays over a reload', async () => {
  const page = await world.open('chats', {theme: 'dark'});
  const shade = () => page.evaluate(() => getComputedStyle(document.body).color);
  const press = name => page.getByRole('button', {name}).click();
  await press('Theme: as the system has it');
  await page.getByRole('button', {name: 'Theme: light'}).waitFor();
  const light = await shade();
  await page.reload();
  await page.getByRole('button', {name: 'Theme: light'}).waitFor();
  assert.equal(await shade(), light);
  await press('Theme: light');
  await page.getByRole('button', {name: 'Theme: dark'}).waitFor();
  const dark = await shade();
  assert.notEqual(dark, light);
  await press('Theme: dark');
  await page.getByRole('button', {name: 'Theme: as the system has it'}).waitFor();
  assert.equal(await shade(), dark, 'the system is dark');
  await page.emulateMedia({colorScheme: 'light'});
  await page.waitForFunction(shade => getComputedStyle(document.body).color === shade, light);
  await page.context().close();
});

test('each command of the palette does what it says', async () => {
  const page = await world.open('chats');
  const open = async () => {
    await page.keyboard.press('Control+k');
    await page.getByRole('listbox', {name: 'Results'}).waitFor();
  };
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await open();
  const titles = await page.getByRole('option').evaluateAll(options => options.map(option => option.querySelector('span, strong')?.textContent ?? option.textContent));
  const commands = titles.filter(title => /^(Go to|New chat|Change the workspace|Light|Dark|Theme)/.test(title));
  await page.keyboard.press('Escape');
  assert.ok(commands.length > 8, commands.join());
  const seen = new Set();
  for (const title of commands) {
    // Each begins where no command leads.
    await page.goto(`${world.hub.url}/#/w/${world.workspace}/files/projects`);
    await page.getByRole('button', {name: /^Theme/}).waitFor();
    const before = await page.evaluate(() => [location.hash, localStorage.getItem('buildscale.theme')].join());
    await open();
    await page.keyboard.type(title);
    await page.getByRole('option', {selected: true}).filter({hasText: title}).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForFunction(before => [location.hash, localStorage.getItem('buildscale.theme')].join() !== before, before);
    assert.equal(await page.getByRole('alert').count(), 0, title);
    seen.add(await page.evaluate(() => [location.hash, localStorage.getItem('buildscale.theme')].join()));
  }
  assert.equal(seen.size, commands.length - 1, 'no two do the same, but that a new chat begins on the page of chats');
  await page.context().close();
});

test('a palette that is opened in the moment in which another one closes stays open', async () => {
  const page = await world.open('chats');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  await page.keyboard.press('Control+k');
  const results = page.getByRole('listbox', {name: 'Results'});
  await results.waitFor();
  // In one task, so that the browser has not told the end of the first one yet.
  await page.evaluate(() => {
    const press = (target, init) => target.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...init}));
    press(document.activeElement, {key: 'Enter'});
    press(window, {key: 'k', ctrlKey: true});
  });
  await results.waitFor();
  await page.keyboard.type('go to usage');
  await page.getByRole('option', {selected: true}).filter({hasText: 'Go to usage'}).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'Usage'}).waitFor();
  await results.waitFor({state: 'hidden'});
  await page.context().close();
});

test('the usage of a day is drawn, and its tables lead to the chats', async () => {
  const chat = await world.chat('Spend something');
  await world.rests(chat);
  const page = await world.open('usage');
  // Two days, where these stories run over midnight.
  const days = [...new Set([began, new Date()].map(time => time.toISOString().slice(0, 10)))];
  const bar = page.locator('.bar:not(.none)');
  await bar.first().waitFor();
  const titles = await bar.evaluateAll(bars => bars.map(bar => bar.getAttribute('title')));
  assert.ok(titles.length <= days.length && titles.every(title => days.some(day => new RegExp(`^${day}: [1-9]`).test(title))), titles.join());
  await page.getByRole('region', {name: 'Models'}).getByRole('row').nth(1).waitFor();
  await page.getByRole('combobox', {name: 'Days'}).selectOption('7');
  await page.waitForFunction(() => document.querySelectorAll('.bar').length === 7);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('.bar').length === 7);
  await page.getByRole('main').getByRole('region', {name: 'Chats'}).getByRole('link', {name: (await view(chat)).title, exact: true}).click();
  await conversation(page).getByText('So says the script.').waitFor();
  await page.context().close();
});
