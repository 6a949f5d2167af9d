// The person at a browser: one that blocks its storage, and what stays behind in it, and in its other tabs, after they have signed out.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {asksToLeave, begin, PATIENCE} from './browser.mjs';

const TOKEN = 'token-of-the-stories-of-a-person';
let world;
before(async () => { world = await begin({args: ['--auth-token', TOKEN], token: TOKEN}); });
after(() => world.end());

const here = place => `${world.hub.url}/#/w/${world.workspace}/${place}`;
const goal = page => page.getByRole('textbox', {name: 'Describe a goal'});
async function signIn(page) {
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
}

test('a browser that blocks its storage shows the console, which keeps what is typed until it is left', async () => {
  const context = await world.browser.newContext({colorScheme: 'dark'});
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage']) {
      Object.defineProperty(window, name, {get() { throw new DOMException('The request was denied.', 'SecurityError'); }});
    }
  });
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', error => faults.push(error.message));
  await page.goto(here('chats'));
  await signIn(page);
  await goal(page).fill('half of a thought');
  await asksToLeave(page);
  await page.getByRole('button', {name: 'Theme: as the system has it'}).click();
  await page.getByRole('button', {name: 'Theme: light'}).waitFor();
  await page.getByRole('link', {name: 'Usage'}).click();
  await page.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  await page.getByRole('link', {name: 'Chats', exact: true}).click();
  await goal(page).waitFor();
  assert.equal(await goal(page).inputValue(), 'half of a thought');
  assert.deepEqual(faults, []);
  await context.close();
});

test('a person who signs out leaves no draft behind, and is signed out in all tabs', async () => {
  const page = await world.open('chats', {});
  await signIn(page);
  await goal(page).fill('something private');
  await page.getByRole('button', {name: 'Theme: as the system has it'}).click();
  const other = await page.context().newPage();
  await other.goto(here('usage'));
  await other.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  const kept = () => page.evaluate(() => JSON.stringify([{...localStorage}, {...sessionStorage}]));
  assert.match(await kept(), /something private/);
  await page.getByRole('button', {name: 'Sign out'}).click();
  await page.getByLabel('Token').waitFor();
  assert.doesNotMatch(await kept(), /something private|draft|view/);
  assert.equal(await page.evaluate(() => localStorage.getItem('buildscale.theme')), 'light', 'the theme is of the machine');
  await other.getByLabel('Token').waitFor();
  // The next person begins with an empty page, in each tab.
  await signIn(page);
  await other.getByRole('heading', {name: 'Usage', exact: true}).waitFor();
  await page.goto(here('chats'));
  await goal(page).waitFor();
  assert.equal(await goal(page).inputValue(), '');
  await page.context().close();
});

test('a person who signs in with a token stays that person', async () => {
  const page = await world.open('chats', {});
  await page.getByLabel('Token').waitFor();
  // A login at an issuer whose token the hub refuses.
  await page.evaluate(() => localStorage.setItem('buildscale.login', JSON.stringify({refresh: 'r', ends: Date.now() + 3_600_000, client: 'c', token: 'https://issuer.invalid/token'})));
  await signIn(page);
  await goal(page).waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem('buildscale.login')), null, 'no refresh of it replaces the token');
  await page.context().close();
});

test('a key is shown although its dialog was closed while it was made', async () => {
  const page = await world.open('people', {token: TOKEN});
  let goOn;
  const seen = new Promise(done => { goOn = done; });
  await page.route('**/api/v1/keys', async route => {
    await seen;
    return route.continue();
  });
  await page.getByRole('button', {name: 'New key'}).click();
  await page.getByRole('textbox', {name: 'Name'}).fill('nightly');
  const asked = page.waitForRequest('**/api/v1/keys');
  await page.getByRole('button', {name: 'Make it'}).click();
  await asked;
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'detached'});
  goOn();
  await page.getByLabel('The key').waitFor();
  // A page over plain HTTP has no clipboard, and says so: nobody closes the key as one that was copied.
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', {value: undefined}));
  await page.getByRole('button', {name: 'Copy', exact: true}).click();
  await page.getByRole('button', {name: 'Select the text to copy it'}).waitFor();
  await page.context().close();
});
