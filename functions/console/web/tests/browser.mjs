// A real Chromium for the stories. Each page counts what must never happen: faults of scripts, and violations of the page's policy.
import axe from 'axe-core';
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {chromium} from 'playwright-core';
import {Client} from '../../../../clients/typescript/dist/index.js';
import {startHub} from '../../../../clients/typescript/test/hub.js';

/** Chromium without windows, where Debian has it: pages look the same in it, and take half of the processor time. */
const WITHOUT_WINDOWS = '/usr/lib/chromium/chromium-headless-shell';
const PROGRAM = process.env.CHROMIUM ?? (existsSync(WITHOUT_WINDOWS) ? WITHOUT_WINDOWS : '/usr/bin/chromium');
// It draws letters as the whole browser does.
const ARGS = ['--font-render-hinting=slight', '--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];

/** How long a story waits for a page, in milliseconds: a machine may be busy with other stories. */
export const PATIENCE = 60_000;

export const launch = () => chromium.launch({executablePath: PROGRAM, args: ARGS});

/** The offline demo as a script, with a count that lasts for ten minutes: a busy machine stops it in time, too. */
async function countsLong(folder) {
  const demo = await readFile(new URL('../../../../shared/models/src/demo.yaml', import.meta.url), 'utf8');
  const long = demo.replace('chunks: 120', 'chunks: 2400').replace(/\n +one, two,[^]*?one hundred\./, numbers => numbers.repeat(20));
  assert.ok(long.length > demo.length + 10_000, 'the demo counts as it did');
  const script = join(folder, 'script.yaml');
  await writeFile(script, long);
  return {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'};
}

/** A hub, a browser, and a workspace in the hub. With `isPatient` "Count slowly" lasts until it is stopped. */
export async function begin({isPatient = false, name = 'Stories', ...options} = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'stories-'));
  const hub = await startHub({...options, env: {...(isPatient ? await countsLong(folder) : {}), ...options.env}});
  const browser = await launch();
  const tokenOf = subject => execFileSync(process.env.BUILDSCALE_BIN, ['token', 'make', subject, '--data-dir', hub.data], {env: {...process.env, ...options.env}, encoding: 'utf8'}).trim();
  const token = options.owner ? tokenOf(options.owner) : options.token;
  const api = new Client({url: hub.url, ...(token ? {token} : {})});
  const {workspace_id: workspace} = await api.post('/api/v1/workspaces', {body: {name}});
  const path = {workspace_id: workspace};
  const faults = [];
  const open = async (place = '', {theme = 'light', width = 1280, height = 800, token} = {}) => {
    const context = await browser.newContext({viewport: {width, height}, colorScheme: theme, reducedMotion: 'reduce'});
    context.setDefaultTimeout(PATIENCE);
    // A frame in a sandbox has no storage.
    if (token) await context.addInitScript(kept => { if (origin !== 'null') localStorage.setItem('buildscale.token', kept); }, token);
    const page = await context.newPage();
    page.on('pageerror', error => faults.push(`${place}: ${error.message}`));
    page.on('console', message => /Content Security Policy|Trusted ?Type/.test(message.text()) && faults.push(`${place}: ${message.text()}`));
    await page.goto(`${hub.url}/${place === '' ? '' : `#/w/${workspace}/${place}`}`);
    return page;
  };
  const end = async () => {
    await browser.close();
    await hub.stop();
    await rm(folder, {recursive: true});
    assert.deepEqual(faults, [], 'no script failed, and nothing broke the policy of the page');
  };
  const chat = async goal => (await api.post('/api/v1/workspaces/{workspace_id}/chats', {path, body: {goal}})).chat_id;
  /** Waits until no turn of a chat runs. */
  const rests = chat => until(async () => (await api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...path, chat_id: chat}})).status === 'idle');
  return {hub, browser, api, workspace, path, open, end, chat, rests, tokenOf};
}

/** Waits until it fits. */
export async function until(fits) {
  for (const late = AbortSignal.timeout(PATIENCE); !(await fits());) {
    late.throwIfAborted();
    await new Promise(done => setTimeout(done, 20));
  }
}

/** Scrolls a list as a reader does, until it fits: a list that is at its end may follow it once more before it hears of the scroll. */
export async function scroll(list, to, fits) {
  await until(async () => {
    await list.evaluate((element, to) => new Promise(done => {
      element.scrollTop = to;
      requestAnimationFrame(() => requestAnimationFrame(done));
    }), to);
    return fits();
  });
}

/** Waits until the browser would ask before it leaves the page, or until it would not. */
export const asksToLeave = (page, asks = true) => page.waitForFunction(asks => dispatchEvent(new Event('beforeunload', {cancelable: true})) !== asks, asks);

/** The texts that an element has from now on, until it is gone: all of them, however short they are there. */
export const textsOf = (page, selector) => page.evaluate(selector => new Promise(resolve => {
  const seen = new Set();
  new MutationObserver((_, observer) => {
    const text = document.querySelector(selector)?.textContent;
    if (text) seen.add(text);
    else if (seen.size > 0) {
      observer.disconnect();
      resolve([...seen]);
    }
  }).observe(document.body, {childList: true, subtree: true, characterData: true});
}), selector);

/** Drops a text file on an element, as from another window. */
export async function drop(target, name, text) {
  const transfer = await target.page().evaluateHandle(([name, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], name, {type: 'text/plain'}));
    return transfer;
  }, [name, text]);
  await target.dispatchEvent('drop', {dataTransfer: transfer});
}

/** The violations of WCAG 2.2 AA on the page. It runs beside the policy of the page, as a debugger does. */
export async function violations(page) {
  const debug = await page.context().newCDPSession(page);
  const run = async expression => {
    const {result, exceptionDetails} = await debug.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await run(`${axe.source}; undefined`);
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
  const found = await run(`axe.run({runOnly: ${JSON.stringify(tags)}}).then(({violations}) => violations.map(({id, nodes}) => [id, ...nodes.map(node => node.html.slice(0, 160) + ' ' + node.failureSummary.slice(0, 200))]))`);
  await debug.detach();
  return found;
}

/** A place in both themes and three widths: nothing violates WCAG, and nothing is wider than the page. `ready` waits until it is there. */
export async function looksRight(world, place, ready) {
  const page = await world.open(place);
  await ready(page);
  for (const [colorScheme, width] of [['light', 1280], ['dark', 820], ['dark', 390], ['light', 390]]) {
    await page.emulateMedia({colorScheme, reducedMotion: 'reduce'});
    await page.setViewportSize({width, height: 800});
    await page.waitForFunction(() => document.documentElement.scrollWidth === innerWidth);
    assert.deepEqual(await violations(page), [], `${colorScheme}, ${width} pixels wide`);
  }
  await page.context().close();
}
