import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {after, before, test} from 'node:test';
import {asksToLeave, begin, drop, scroll, violations} from './browser.mjs';

let world;
before(async () => { world = await begin({isPatient: true}); });
after(() => world.end());

const conversation = page => page.getByRole('log', {name: 'Conversation'});
/** Begins a chat on the page of new chats, by keyboard alone. */
async function start(page, goal) {
  await page.getByRole('textbox', {name: 'Describe a goal'}).fill(goal);
  await page.keyboard.press('Enter');
  await page.waitForURL(/chats\/[0-9a-f-]{36}$/);
}

test('a person begins a chat, and a reload loses nothing of it', async () => {
  // So high that all rows are in sight, and in the document.
  const page = await world.open('chats', {height: 4000});
  await start(page, 'Show me what you can do');
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await page.getByText('3 of 3').waitFor();
  await conversation(page).getByText(/tokens read/).waitFor();
  assert.equal(await page.getByRole('progressbar', {name: 'Steps done'}).getAttribute('value'), '3');
  await page.getByRole('complementary').getByRole('link', {name: /hello\.md/}).waitFor();
  const words = (await conversation(page).innerText()).replace(/\s+/g, ' ');
  assert.deepEqual(await violations(page), []);
  await page.reload();
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await conversation(page).getByText(/tokens read/).waitFor();
  assert.equal((await conversation(page).innerText()).replace(/\s+/g, ' '), words);
  await page.context().close();
});

test('thoughts and calls are folded, with their arguments, output and differences', async () => {
  const chat = await world.chat('Show me what you can do');
  // So high that all rows are in the document.
  const page = await world.open(`chats/${chat}`, {height: 4000});
  await conversation(page).getByText(/tokens read/).waitFor();
  const edit = page.getByRole('button', {name: /^edit/});
  await edit.click();
  await page.getByLabel('Differences').getByText(/^\+Demo status: finished/).waitFor();
  await page.reload();
  await page.getByLabel('Differences').getByText(/^\+Demo status: finished/).waitFor();
  await page.getByRole('button', {name: /^grep/}).click();
  await page.locator('.fold-body').getByText('Demo status: finished').first().waitFor();
  const thought = page.getByRole('button', {name: 'Thought'}).last();
  assert.equal(await thought.getAttribute('aria-expanded'), 'false');
  await page.context().close();
});

test('a fold that is pressed while an answer streams stays in place, and stays open out of sight', async () => {
  const chat = await world.chat('Show me what you can do');
  const page = await world.open(`chats/${chat}`, {height: 1000});
  await conversation(page).getByText(/tokens read/).waitFor();
  await page.getByRole('textbox', {name: 'Write a message'}).fill('Count slowly');
  await page.keyboard.press('Enter');
  await conversation(page).getByText('I count slowly').waitFor();
  const fold = conversation(page).getByRole('button', {name: /^grep/});
  await fold.waitFor();
  const height = () => conversation(page).evaluate(element => element.scrollHeight);
  // The answer that streams may move it away from below the pointer, until it is pressed.
  for (;;) {
    await fold.hover();
    await page.mouse.down();
    if (await fold.evaluate(element => element.matches(':active'))) break;
    await page.mouse.move(0, 0);
    await page.mouse.up();
  }
  const pressed = await height();
  await page.waitForFunction(least => document.querySelector('[role=log]').scrollHeight > least, pressed + 80);
  await page.mouse.up();
  await conversation(page).locator('.fold-body').getByText('Demo status: finished').first().waitFor();
  const top = (await fold.boundingBox()).y;
  const opened = await height();
  await page.waitForFunction(least => document.querySelector('[role=log]').scrollHeight > least, opened + 20);
  assert.equal((await fold.boundingBox()).y, top);
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await conversation(page).getByText('You stopped it.').waitFor();
  await page.setViewportSize({width: 1280, height: 500});
  const first = conversation(page).getByRole('button', {name: /^plan_write/});
  const isThere = async () => await first.count() > 0;
  await scroll(conversation(page), 0, isThere);
  await first.click();
  await scroll(conversation(page), 1e6, async () => !(await isThere()));
  await scroll(conversation(page), 0, isThere);
  await first.and(page.locator('[aria-expanded=true]')).waitFor();
  await page.context().close();
});

test('a reader at the end stays there when the page changes its size, and one further up stays there, too', async () => {
  const chat = await world.chat('Show me what you can do');
  const page = await world.open(`chats/${chat}`, {height: 700});
  await conversation(page).getByText(/tokens read/).waitFor();
  const isAtEnd = () => page.waitForFunction(() => {
    const list = document.querySelector('[role=log]');
    return list.scrollTop > 0 && list.scrollHeight - list.scrollTop - list.clientHeight < 2;
  });
  /** A list that gets smaller, is moved up by some pixels for it, and tells that it was scrolled, as a browser does before the list is laid out. */
  const shrink = (height, up = 0) => page.evaluate(([height, up]) => {
    const list = document.querySelector('[role=log]');
    list.style.height = `${height}px`;
    list.scrollTop -= up;
    list.dispatchEvent(new Event('scroll'));
  }, [height, up]);
  await isAtEnd();
  await shrink(400);
  await isAtEnd();
  await shrink(300, 20);
  await isAtEnd();
  const top = () => conversation(page).evaluate(list => list.scrollTop);
  const middle = (await top()) - 150;
  await scroll(conversation(page), middle, async () => Math.abs(await top() - middle) < 2);
  const read = await top();
  await shrink(200);
  await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  assert.equal(await top(), read);
  await page.context().close();
});

test('a question is a form, and a button of it is an answer', async () => {
  const page = await world.open('chats');
  await start(page, 'Ask me something');
  const form = page.getByRole('form', {name: 'The agent asks'});
  await form.getByText('Which colour should the demo have?').waitFor();
  await page.getByRole('navigation').getByText('needs you').waitFor();
  assert.deepEqual(await violations(page), []);
  await form.getByRole('button', {name: 'Answer'}).click();
  await form.getByText('Which colour should the demo have? is needed').waitFor();
  await form.getByRole('button', {name: 'blue'}).click();
  await conversation(page).getByText('Your answer was: blue').waitFor();
  await form.waitFor({state: 'detached'});
  await page.context().close();
});

test('a permission shows the command, and is denied with a reason that the agent reads', async () => {
  const page = await world.open('chats');
  await start(page, 'Run a command');
  const card = page.getByRole('region', {name: 'The agent asks for permission'});
  await card.getByText('uname -sr; ls -l; touch here; true', {exact: true}).waitFor();
  assert.deepEqual(await violations(page), []);
  await card.getByRole('button', {name: 'Deny…'}).click();
  await card.getByRole('textbox', {name: /reason/}).fill('not on a Wednesday');
  await page.reload();
  assert.equal(await card.getByRole('textbox', {name: /reason/}).inputValue(), 'not on a Wednesday');
  await card.getByRole('button', {name: 'Deny', exact: true}).click();
  await conversation(page).getByText(/It did not run: .*not on a Wednesday/s).waitFor();
  await page.getByText('denied').waitFor();
  await page.context().close();
});

test('a permission is granted once, and the command runs', async () => {
  const page = await world.open('chats');
  await start(page, 'Run a command');
  await page.getByRole('button', {name: 'Allow once'}).click();
  await page.getByText('allowed').waitFor();
  await page.getByRole('button', {name: /^exec/}).waitFor();
  await conversation(page).getByText(/This is what it printed|It did not run/).waitFor();
  await page.context().close();
});

test('a running turn is stopped, and its words are kept', async () => {
  const page = await world.open('chats');
  await start(page, 'Count slowly');
  await conversation(page).getByText('I count slowly').waitFor();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await conversation(page).getByText('You stopped it.').waitFor();
  await conversation(page).getByText('I count slowly').waitFor();
  await page.getByRole('button', {name: 'Stop', exact: true}).waitFor({state: 'detached'});
  await page.context().close();
});

test('a message that is written meanwhile waits for its turn', async () => {
  const page = await world.open('chats');
  await start(page, 'Count slowly');
  await conversation(page).getByText('I count slowly').waitFor();
  await page.getByRole('textbox', {name: 'Write what comes next'}).fill('Show me more');
  await page.keyboard.press('Enter');
  await page.getByRole('list', {name: 'Messages that wait'}).getByText('Show me more').waitFor();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await page.context().close();
});

test('two browsers show one chat, and an answer of one closes the question of the other', async () => {
  const chat = await world.chat('Ask me something');
  const [one, other] = await Promise.all([world.open(`chats/${chat}`), world.open(`chats/${chat}`, {theme: 'dark'})]);
  const form = page => page.getByRole('form', {name: 'The agent asks'});
  await Promise.all([form(one).waitFor(), form(other).waitFor()]);
  await form(one).getByRole('button', {name: 'green'}).click();
  await conversation(other).getByText('Your answer was: green').waitFor();
  await form(other).waitFor({state: 'detached'});
  await other.getByRole('textbox', {name: 'Write a message'}).fill('Show me what you can do');
  await other.keyboard.press('Enter');
  await conversation(one).locator('.bubble').getByText('Show me what you can do').waitFor();
  await Promise.all([one.context().close(), other.context().close()]);
});

test('a draft survives a reload', async () => {
  const chat = await world.chat('Show me what you can do');
  const page = await world.open(`chats/${chat}`);
  const area = page.getByRole('textbox', {name: /Write/});
  await area.fill('half of a thought');
  await page.reload();
  await area.waitFor();
  assert.equal(await area.inputValue(), 'half of a thought');
  await page.getByRole('button', {name: 'Rename this chat'}).click();
  const title = page.getByRole('textbox', {name: 'Title'});
  await title.fill('half of a title');
  await page.reload();
  assert.equal(await title.inputValue(), 'half of a title');
  await page.getByRole('button', {name: 'Rename', exact: true}).click();
  await page.getByRole('heading', {name: 'half of a title'}).waitFor();
  // One that is closed is given up.
  await page.getByRole('button', {name: 'Rename this chat'}).click();
  await title.fill('another');
  await page.keyboard.press('Escape');
  await page.reload();
  await area.waitFor();
  assert.equal(await title.count(), 0);
  await page.context().close();
});

test('a file is attached by dropping it', async () => {
  const page = await world.open('chats');
  await drop(page.locator('.composer'), 'notes.txt', 'some notes');
  await page.locator('.composer .chip').getByText(/notes\.txt$/).waitFor();
  await start(page, 'Show me what you can do');
  await conversation(page).getByRole('link', {name: /notes\.txt/}).waitFor();
  await page.context().close();
});

test('words that are written while a message is on its way are kept', async () => {
  const chat = await world.chat('Ask me something');
  const page = await world.open(`chats/${chat}`);
  await page.getByRole('form', {name: 'The agent asks'}).waitFor();
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  await page.route(`**/chats/${chat}`, async route => {
    await seen;
    await route.continue();
  });
  await page.getByRole('textbox', {name: 'Write what comes next'}).fill('one');
  await page.keyboard.press('Enter');
  await page.keyboard.type(' and another');
  goOn();
  await page.getByRole('list', {name: 'Messages that wait'}).getByText('one', {exact: true}).waitFor();
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === 'and another');
  await page.context().close();
});

test('a file that is dropped while another one is uploaded comes along, too', async () => {
  const page = await world.open('chats');
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  await page.route('**/uploads', async route => {
    await seen;
    await route.continue();
  });
  const composer = page.locator('.composer');
  await drop(composer, 'one.txt', 'one');
  await composer.getByRole('status').getByText(/one\.txt/).waitFor();
  await drop(composer, 'two.txt', 'two');
  await asksToLeave(page);
  goOn();
  for (const name of [/one\.txt$/, /two\.txt$/]) await composer.locator('.chip').getByText(name).waitFor();
  // A message is not sent while the last upload still ends.
  await composer.getByRole('status').waitFor({state: 'detached'});
  await asksToLeave(page, false);
  await start(page, 'Show me what you can do');
  for (const name of [/one\.txt/, /two\.txt/]) await conversation(page).getByRole('link', {name}).waitFor();
  await page.context().close();
});

test('a network that is cut and comes back loses no event', async () => {
  const page = await world.open('chats');
  await start(page, 'Ask me something');
  await page.getByRole('form', {name: 'The agent asks'}).waitFor();
  const chat = page.url().split('/').at(-1);
  await page.context().setOffline(true);
  await page.getByRole('status').getByText('You are offline').waitFor();
  const view = await world.api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...world.path, chat_id: chat}});
  await world.api.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}', {
    path: {...world.path, chat_id: chat, question_id: view.waiting_for[0].data.question_id}, body: {answers: {colour: 'red'}},
  });
  await page.context().setOffline(false);
  await conversation(page).getByText('Your answer was: red').waitFor();
  await page.getByRole('status').getByText('You are offline').waitFor({state: 'detached'});
  await page.context().close();
});

test('a message is edited in a fork, and the chat itself stays as it was', async () => {
  const chat = await world.chat('Show me what you can do');
  const page = await world.open(`chats/${chat}`);
  await conversation(page).getByText(/tokens read/).waitFor();
  // Rows out of sight are not in the document.
  const edit = conversation(page).getByRole('button', {name: 'Edit', exact: true}).first();
  await scroll(conversation(page), 0, () => edit.isVisible());
  await edit.click();
  await page.waitForURL(url => !url.href.includes(chat));
  const area = page.getByRole('textbox', {name: 'Write a message'});
  await page.waitForFunction(() => document.querySelector('.composer textarea')?.value === 'Show me what you can do');
  await area.fill('Ask me something');
  await page.keyboard.press('Enter');
  await page.getByRole('form', {name: 'The agent asks'}).waitFor();
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await page.context().close();
});

test('a message can interrupt the turn that runs', async () => {
  const page = await world.open('chats');
  await start(page, 'Count slowly');
  await conversation(page).getByText('I count slowly').waitFor();
  await page.getByRole('textbox', {name: 'Write what comes next'}).fill('Show me what you can do');
  await page.getByRole('button', {name: 'Interrupt'}).click();
  await conversation(page).getByText('Done. This is what happened:').waitFor();
  await page.context().close();
});

test('words steer the turn that runs', async () => {
  const page = await world.open('chats');
  await start(page, 'Ask me something');
  const form = page.getByRole('form', {name: 'The agent asks'});
  await form.waitFor();
  await page.getByRole('textbox', {name: 'Write what comes next'}).fill('in a light tone, please');
  await page.getByRole('button', {name: 'Steer'}).click();
  await page.waitForFunction(() => document.querySelector('.composer textarea').value === '');
  await form.getByRole('button', {name: 'green'}).click();
  await conversation(page).locator('.bubble').getByText('in a light tone, please').waitFor();
  await conversation(page).getByText(/tokens read/).waitFor();
  // One turn, with both messages.
  assert.equal(await conversation(page).locator('.end').count(), 1);
  await page.context().close();
});

test('a plan is written first, approved, and carried out', async () => {
  const page = await world.open('chats');
  await page.getByRole('combobox', {name: 'Mode', exact: true}).selectOption('plan');
  await start(page, 'Show me what you can do');
  await page.getByRole('button', {name: 'Approve and build'}).click();
  await conversation(page).getByText('The plan was approved, version').waitFor();
  await page.getByRole('combobox', {name: 'Mode', exact: true}).getByRole('option', {name: 'Build the plan', selected: true}).waitFor({state: 'attached'});
  await page.context().close();
});

test('a chat of 2,000 messages has the rows in sight in the document, and no more while an answer streams', async () => {
  const chat = await world.chat('Ask me something');
  const page = await world.open('chats');
  const id = at => `01890000-0000-7000-8000-${String(at).padStart(12, '0')}`;
  await page.route(`**/chats/${chat}?*`, async route => {
    const answer = await route.fetch();
    const {messages, ...view} = await answer.json();
    const long = Array.from({length: 2000}, (_, at) => ({...messages[0], id: id(at), seq: at + 1, role: at % 2 ? 'assistant' : 'user', content: `Message ${at}\n\n- one\n- two`}));
    await route.fulfill({response: answer, json: {...view, messages: long, next_before: null, turn_seq: null, last_seq: 2000}});
  });
  const pieces = Array.from({length: 600}, (_, at) => `id: 1\nevent: chat_event\ndata: ${JSON.stringify({chat_id: chat, id: 900_000 + at, event: 'chunk', data: {message_id: id(9999), text: `word${at} `}})}\n\n`);
  await page.route('**/events?*', route => route.fulfill({contentType: 'text/event-stream', body: pieces.join('')}));
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  await conversation(page).getByText('word599').waitFor();
  assert.ok(await conversation(page).locator('.row').count() < 60);
  // The first message is there all the same.
  await scroll(conversation(page), 0, () => conversation(page).getByText('Message 0').isVisible());
  assert.ok(await conversation(page).locator('.row').count() < 60);
  await page.context().close();
});

test('a message that waits names its author where several people write', async () => {
  const chat = await world.chat('Show me what you can do');
  await world.rests(chat);
  const me = await world.api.get('/api/v1/workspaces/{workspace_id}/members/me', {path: world.path});
  const bob = '01890000-0000-7000-8000-000000000b0b';
  let author = me.user_id;
  const page = await world.open();
  await page.route('**/members?*', route => route.fulfill({json: {members: [{user_id: bob, subject: 'bob@example.org', role: 'editor', added_at: '2026-01-01T00:00:00Z'}]}}));
  await page.route(`**/chats/${chat}?*`, async route => {
    const answer = await route.fetch();
    const queued = [{turn_id: '01890000-0000-7000-8000-000000000009', content: 'In blue, please', user_id: author, at: '2026-01-01T00:00:00Z'}];
    await route.fulfill({response: answer, json: {...await answer.json(), queued}});
  });
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats/${chat}`);
  const waiting = page.getByRole('list', {name: 'Messages that wait'});
  await waiting.getByText('In blue, please').waitFor();
  assert.equal(await waiting.locator('.author').count(), 0, 'a person alone knows who wrote it');
  author = bob;
  await page.reload();
  await waiting.getByText('bob@example.org').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.context().close();
});

/** Each command that the README and the page about curl have, in their order, and the way of the mouse to the same. */
const BY_MOUSE = [
  [/^W=.*\/workspaces -H .*"name": "demo"/, async page => {
    await page.getByRole('textbox', {name: 'Name of a new workspace'}).fill('demo');
    await page.getByRole('button', {name: 'Make it'}).click();
  }],
  [/^C=.*\/chats -H .*"goal": "Show me what you can do"/, page => page.getByRole('button', {name: 'Show me what you can do'}).click()],
  [/^curl -N .*\/events\?after=0/, page => conversation(page).getByText(/tokens read/).waitFor()],
  [/"content": "count slowly"/, async page => {
    await page.getByRole('textbox', {name: 'Write a message'}).fill('count slowly');
    await page.getByRole('button', {name: 'Send', exact: true}).click();
    await conversation(page).getByText('I count slowly').waitFor();
  }],
  [/-X POST .*\/stop$/, async page => {
    await page.getByRole('button', {name: 'Stop', exact: true}).click();
    await conversation(page).getByText('You stopped it.').waitFor();
  }],
  [/\/files\?path=\/projects\/demo/, async page => {
    await page.getByRole('navigation', {name: 'Workspace'}).getByRole('link', {name: 'Files', exact: true}).click();
    for (const folder of [/^projects/, /^demo/]) await page.locator('.entries').getByRole('link', {name: folder}).click();
    await page.locator('.entries').getByRole('link', {name: /^hello\.md/}).waitFor();
  }],
  [/^W=.*\/workspaces \|/, async page => {
    await page.getByRole('combobox', {name: 'Workspace'}).selectOption('');
    await page.getByRole('main').getByRole('link', {name: /^demo/}).waitFor();
  }],
  // A hub with a token has a story of its own.
  [/command curl -H "authorization: Bearer/, async () => assert.match(await readFile(new URL('pages.test.mjs', import.meta.url), 'utf8'), /^test\('a person signs in with a token/m)],
];

test('all that the README does with curl is done with the mouse', async () => {
  const commands = await Promise.all(['README.md', 'docs/how-to/curl.md'].map(async name => {
    const text = await readFile(new URL(`../../../../${name}`, import.meta.url), 'utf8');
    return text.split('\n').filter(line => line.startsWith('    ') && /\bcurl /.test(line)).map(line => line.trim().replace(/ +#.*/, ''));
  }));
  const page = await world.open();
  const done = new Set();
  for (const command of commands.flat()) {
    const ways = BY_MOUSE.filter(([pattern]) => pattern.test(command));
    assert.equal(ways.length, 1, `one way of the mouse for: ${command}`);
    if (!done.has(ways[0])) await ways[0][1](page);
    done.add(ways[0]);
  }
  assert.equal(done.size, BY_MOUSE.length);
  await page.context().close();
});

// The last one, since others would feel it.
test('a hub that is killed while it streams is waited for, and the turn goes on', async () => {
  const page = await world.open('chats');
  await start(page, 'Count slowly');
  await conversation(page).getByText('I count slowly').waitFor();
  await world.hub.kill();
  await page.getByRole('status').getByText('Reconnecting').waitFor();
  await world.hub.restart();
  await conversation(page).getByText('The turn goes on after an interruption').waitFor();
  await conversation(page).getByText('I count slowly').waitFor();
  await page.getByRole('status').getByText('Reconnecting').waitFor({state: 'detached'});
  assert.equal(await conversation(page).getByText('I count slowly').count(), 1);
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  await conversation(page).getByText('You stopped it.').waitFor();
  await page.context().close();
});
