import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {startHub} from '../../../../clients/typescript/test/hub.js';
import {launch, PATIENCE, violations} from './browser.mjs';
import {startIssuer} from './issuer.mjs';

let issuer, hub, browser;
before(async () => {
  issuer = await startIssuer();
  hub = await startHub({env: issuer.env});
  issuer.serve(`${hub.url}/`);
  browser = await launch();
});
after(async () => {
  await browser.close();
  await hub.stop();
  await issuer.stop();
});

const kept = (page, name) => page.evaluate(name => localStorage.getItem(`buildscale.${name}`), name);
async function open(place = '') {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  await page.goto(`${hub.url}/${place}`);
  return page;
}
async function signIn(page, name) {
  await page.getByRole('button', {name: /^Sign in at 127\.0\.0\.1/}).click();
  await page.getByPlaceholder('Enter any login').fill(name);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', {name: 'Sign-in'}).click();
  await page.getByRole('button', {name: 'Continue'}).click();
}

test('a person signs in at the issuer, goes on where they were, is refreshed, and signs out there, too', async () => {
  const page = await open();
  await page.getByRole('button', {name: /^Sign in at/}).waitFor();
  assert.deepEqual(await violations(page), []);
  await signIn(page, 'ann@example.org');
  await page.getByRole('heading', {name: 'Make your first workspace'}).waitFor();
  assert.equal(new URL(page.url()).search, '', 'the code is not in the address');
  await page.getByRole('textbox', {name: 'Name of a new workspace'}).fill('Mine');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'What should be done?'}).waitFor();
  const first = await kept(page, 'token');
  // The access token is about to end.
  await page.evaluate(() => {
    const login = JSON.parse(localStorage.getItem('buildscale.login'));
    localStorage.setItem('buildscale.login', JSON.stringify({...login, ends: Date.now()}));
  });
  await page.getByRole('link', {name: 'Usage'}).click();
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  await page.waitForFunction(first => localStorage.getItem('buildscale.token') !== first, first);
  const place = page.url();
  await page.getByRole('button', {name: 'Sign out'}).click();
  await page.getByRole('button', {name: /^Sign in at/}).waitFor();
  assert.deepEqual([await kept(page, 'token'), await kept(page, 'login')], [null, null]);
  await issuer.revoked;
  // A page that asks for a sign-in comes back to itself.
  await page.goto(place);
  await page.reload();
  await page.getByRole('button', {name: /^Sign in at/}).click();
  await page.getByRole('button', {name: 'Continue'}).click();
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  assert.equal(page.url(), place);
  await page.context().close();
});

test('an answer that nobody asked for signs nobody in', async () => {
  const page = await open('?code=stolen&state=forged');
  await page.getByRole('alert').getByText('is not for this tab').waitFor();
  assert.equal(await kept(page, 'token'), null);
  assert.equal(new URL(page.url()).search, '');
  await page.context().close();
});

test('a person who declines at the issuer is told so', async () => {
  const page = await open();
  await page.getByRole('button', {name: /^Sign in at/}).click();
  await page.getByRole('link', {name: /Cancel/}).click();
  await page.getByRole('alert').getByText(/aborted|denied/i).waitFor();
  await page.context().close();
});
