// The page of a chat in a new browser: when a person can write in it, and the times between its frames, at rest and while an answer streams.
// `scripts/bench console` runs it. HUB is the address of a hub, and CHAT the path of a chat in its API whose next message "stream" is answered for long
// enough. One JSON object on standard output.
import {chromium} from 'playwright-core';

const SECONDS = 15;
const {HUB: hub, CHAT: chat} = process.env;
const [, , , , workspace, , id] = chat.split('/');

const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking']});
const page = await browser.newPage({viewport: {width: 1280, height: 800}});
await page.goto(`${hub}/#/w/${workspace}/chats/${id}`);
// From the beginning of the navigation, by the clock of the page.
const ready_ms = await page.waitForFunction(() => document.querySelector('.composer textarea:enabled') && performance.now(), undefined, {polling: 'raf'}).then(handle => handle.jsonValue());
const conversation = page.getByRole('log', {name: 'Conversation'});
await conversation.getByText('Yes.').last().waitFor();

const words = () => conversation.evaluate(log => log.innerText.match(/\bword\b/g)?.length ?? 0);
/** The milliseconds between frames for some seconds. */
const times = () => page.evaluate(seconds => new Promise(resolve => {
  const all = [];
  let begin, last;
  const next = now => {
    if (last !== undefined) all.push(now - last);
    begin ??= now;
    last = now;
    if (now - begin < seconds * 1000) requestAnimationFrame(next);
    else resolve(all);
  };
  requestAnimationFrame(next);
}), SECONDS);

/** A frame is dropped when the display shows the one before in its place. */
function told(all) {
  const sorted = all.toSorted((one, other) => one - other);
  const at = part => sorted[Math.round((sorted.length - 1) * part)];
  const dropped = all.reduce((sum, took) => sum + Math.max(0, Math.round(took / (1000 / 60)) - 1), 0);
  return {p50: at(0.5), p99: at(0.99), longest: at(1), frames: all.length, dropped};
}

const idle = told(await times());
const sent = await fetch(`${hub}${chat}`, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({content: 'stream'})});
if (!sent.ok) throw new Error(await sent.text());
await conversation.getByText('word word').waitFor();
const [before, began] = [await words(), performance.now()];
const streaming = told(await times());
streaming.tokens_per_s = (await words() - before) / ((performance.now() - began) / 1000);
await browser.close();
process.stdout.write(`${JSON.stringify({ready_ms, idle, streaming})}\n`);
