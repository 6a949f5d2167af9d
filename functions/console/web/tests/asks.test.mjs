// Questions of agents and of the servers that they use.
import assert from 'node:assert/strict';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {begin, violations} from './browser.mjs';

test('an address in a question is a link that is shown whole', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'asks-'));
  const script = join(folder, 'script.yaml');
  await writeFile(script, `rules:
- when: {user: '^pay'}
  steps:
  - calls: [{tool: ask_user, args: {questions: [{name: paid, question: 'Open https://shop.example/pay?id=7: is it paid?', schema: {enum: ['yes', 'no']}}]}}]
  - {text: 'You said {{call.0.output/paid}}.'}
`);
  const world = await begin({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
  try {
    const chat = await world.chat('pay');
    const page = await world.open(`chats/${chat}`);
    const form = page.getByRole('form', {name: 'The agent asks'});
    const link = form.getByRole('link', {name: 'https://shop.example/pay?id=7', exact: true});
    assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel')], ['https://shop.example/pay?id=7', 'noreferrer noopener']);
    await page.locator('.chat-head').getByText('needs you').waitFor();
    assert.deepEqual(await violations(page), []);
    await form.getByRole('combobox').selectOption('yes');
    await form.getByRole('button', {name: 'Answer'}).click();
    await page.getByRole('log', {name: 'Conversation'}).getByText('You said yes.').waitFor();
    await page.context().close();
  } finally {
    await world.end();
    await rm(folder, {recursive: true});
  }
});
