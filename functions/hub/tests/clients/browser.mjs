// The clients of LangGraph (`useStream`), the AI SDK (`useChat`) and AG-UI in Chromium: a bundle of the packages as they are, on a page of the hub's
// origin. The page asks, is answered, is reloaded in the middle of a run, and stops it.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { base, chromiumProgram, finish, workspace } from './common.mjs';

// The bundler is the one that builds the console.
const { build } = createRequire(`${process.env.CONSOLE}/package.json`)('esbuild');
const { outputFiles: [{ text: script }] } = await build({
  entryPoints: [fileURLToPath(new URL('browser-page.mjs', import.meta.url))],
  bundle: true, write: false, format: 'iife', platform: 'browser', target: 'es2022', logLevel: 'error',
  define: { 'process.env.NODE_ENV': '"production"' },
});

const browser = await chromium.launch({ executablePath: chromiumProgram, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const page = await browser.newPage();
// A machine may be busy with other tests.
page.setDefaultTimeout(60_000);
const faults = [];
page.on('pageerror', (error) => faults.push(error.message));
const url = `${base}/page-of-clients?workspace=${workspace}`;
const body = '<!doctype html><meta charset="utf-8"><div id="root"></div><script src="/page-of-clients.js"></script>';
await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body }));
await page.route(`${base}/page-of-clients.js`, (route) => route.fulfill({ contentType: 'text/javascript', body: script }));
await page.goto(url);
const out = {};

/** One of the two chats of the page. */
const chat = (name) => {
  const part = page.getByRole('region', { name });
  const messages = part.getByRole('log').getByRole('listitem');
  const asks = part.getByRole('button', { name: /^(Approve|Decline) / });
  return {
    messages, asks,
    say: async (words) => {
      await part.getByRole('textbox').fill(words);
      await part.getByRole('textbox').press('Enter');
    },
    shows: (text) => messages.filter({ hasText: text }).waitFor(),
    count: (text) => messages.filter({ hasText: text }).count(),
    status: (text) => part.getByRole('status').filter({ hasText: text }).waitFor(),
    press: (button) => part.getByRole('button', { name: button }).click(),
  };
};
const all = 'one two three four five six seven eight nine ten';
const stream = chat('useStream');
await stream.say('become a poet');
await stream.press('Approve write');
await stream.shows('I have become a poet.');
await stream.status('ready');
out.useStream = [await stream.messages.count(), await stream.asks.count()];

await stream.say('slow');
await stream.shows('one two');
await page.reload();
await stream.shows(all);
await stream.status('busy');
out.reloaded = await stream.count('slow');
await stream.press('Stop');
await stream.status('stopped');
out.kept = await stream.count(all);

const ui = chat('useChat');
await ui.say('become a poet');
await ui.press('Decline write');
await ui.shows('Then I stay as I am.');
await ui.status('ready');
const declined = [await ui.messages.count(), await ui.asks.count()];
await ui.say('slow');
await ui.shows('one two');
await page.reload();
await ui.shows(all);
await ui.status('busy');
const reloaded = await ui.count('slow');
await ui.press('Stop');
await ui.status('ready');
out.useChat = { declined, reloaded, kept: await ui.count(all) };
// The state of the thread, as the log has it now.
await stream.shows(all);

out.agUi = await page.evaluate(() => globalThis.runAgUi());
await browser.close();
out.faults = faults;
finish(out);
