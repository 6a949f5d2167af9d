import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {begin, looksRight, violations} from './browser.mjs';
import {startReceiver} from './receiver.mjs';

const SECRET = 'a secret of at least thirty-two characters, for tests';
let world, receiver, token;
before(async () => {
  receiver = await startReceiver();
  world = await begin({env: {BUILDSCALE__AUTH__SECRET: SECRET, BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE: 'true', BUILDSCALE__WEBHOOKS__RETRY_SECONDS: '1'}, owner: 'ann@example.org'});
  token = world.tokenOf('ann@example.org');
});
after(async () => {
  await world.end();
  await receiver.stop();
});

const delivery = page => page.getByRole('list', {name: 'Deliveries'}).getByRole('listitem').first();

test('a webhook is made, keeps its draft, shows its secret once, and tells of a turn', async () => {
  const page = await world.open('webhooks', {token});
  await page.getByText('Nobody is told anything').waitFor();
  await page.getByRole('button', {name: 'New webhook'}).click();
  await page.getByRole('textbox', {name: 'Name'}).fill('Team channel');
  await page.reload();
  assert.equal(await page.getByRole('textbox', {name: 'Name'}).inputValue(), 'Team channel');
  await page.getByRole('textbox', {name: /Address/}).fill(receiver.url);
  await page.getByRole('checkbox', {name: /question\.asked/}).check();
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', {name: 'Make it'}).click();
  receiver.secret = await page.getByLabel('The secret').innerText();
  assert.match(receiver.secret, /^whsec_/);
  assert.deepEqual(await violations(page), []);
  await page.keyboard.press('Escape');
  await page.getByText('active', {exact: true}).waitFor();
  assert.ok(!(await page.content()).includes(receiver.secret), 'the page forgets the secret');
  assert.ok(!(await page.evaluate(() => JSON.stringify({...localStorage}))).includes('whsec_'));
  await world.chat('Ask me something');
  await page.getByRole('link', {name: 'Team channel'}).click();
  await delivery(page).getByText('question.asked').waitFor();
  await delivery(page).getByText('delivered', {exact: true}).waitFor();
  await delivery(page).getByText('question.asked').click();
  await page.getByRole('region', {name: 'Attempts'}).getByRole('cell', {name: '204'}).waitFor();
  await page.getByLabel('What was sent').getByText('question_id').waitFor();
  assert.deepEqual(await violations(page), []);
  assert.deepEqual([receiver.taken, receiver.forged], [['question.asked'], 0]);
  await page.context().close();
});

test('a receiver that fails is seen, and a delivery is sent again', async () => {
  receiver.status = 503;
  const page = await world.open('webhooks', {token});
  await page.getByRole('button', {name: 'Test Team channel'}).click();
  await page.getByText(/fails since/).waitFor();
  await page.getByRole('link', {name: 'Team channel'}).click();
  await delivery(page).getByText('webhook.test').waitFor();
  await delivery(page).getByText('503').first().waitFor();
  await delivery(page).getByText('pending', {exact: true}).waitFor();
  receiver.status = 204;
  await delivery(page).getByText('webhook.test').click();
  await delivery(page).getByRole('button', {name: 'Send again'}).click();
  await delivery(page).getByText('delivered', {exact: true}).waitFor();
  await page.context().close();
});

test('a webhook gets a new secret, is paused, resumed and removed', async () => {
  const page = await world.open('webhooks', {token});
  const old = receiver.secret;
  await page.getByRole('button', {name: 'New secret for Team channel'}).click();
  await page.getByRole('button', {name: 'Make a new secret'}).click();
  receiver.secret = await page.getByLabel('The secret').innerText();
  assert.notEqual(receiver.secret, old);
  await page.keyboard.press('Escape');
  await page.getByRole('button', {name: 'Pause Team channel'}).click();
  await page.getByText('paused', {exact: true}).waitFor();
  await page.getByRole('button', {name: 'Resume Team channel'}).click();
  await page.getByText('active', {exact: true}).waitFor();
  await page.getByRole('button', {name: 'Test Team channel'}).click();
  await page.getByRole('link', {name: 'Team channel'}).click();
  await delivery(page).getByText('delivered', {exact: true}).waitFor();
  assert.equal(receiver.forged, 0);
  await page.goBack();
  await page.getByRole('button', {name: 'Remove Team channel'}).click();
  await page.getByRole('dialog').getByRole('button', {name: 'Remove', exact: true}).click();
  await page.getByText('Nobody is told anything').waitFor();
  await page.context().close();
});

test('somebody who is no admin is told so', async () => {
  await world.api.post('/api/v1/workspaces/{workspace_id}/members', {path: world.path, body: {subject: 'bob@example.org', role: 'editor'}});
  const page = await world.open('webhooks', {token: world.tokenOf('bob@example.org')});
  await page.getByRole('heading', {name: 'Webhooks are for admins'}).waitFor();
  await page.context().close();
});

test('webhooks and their deliveries look right in both themes and on a phone', async () => {
  const made = await world.api.post('/api/v1/workspaces/{workspace_id}/webhooks', {path: world.path, body: {name: 'A channel with a rather long name', url: `${receiver.url}?and=${'x'.repeat(200)}`, events: ['turn.ended', 'task.ended', 'question.asked', 'permission.asked', 'plan.submitted']}});
  const id = made.webhook.webhook_id;
  receiver.secret = made.secret;
  await world.api.post('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test', {path: {...world.path, webhook_id: id}});
  await looksRight({...world, open: (place, look) => world.open(place, {...look, token})}, 'webhooks', page => page.getByText('A channel with').waitFor());
  await looksRight({...world, open: (place, look) => world.open(place, {...look, token})}, `webhooks/${id}`, async page => {
    await delivery(page).getByText('webhook.test').click();
    await page.getByRole('button', {name: 'Send again'}).waitFor();
  });
});
