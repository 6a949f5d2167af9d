// A document in which the hooks for React are shown, and a hub that says what the test wants. To be loaded before React.
import assert from 'node:assert/strict';
import {afterEach} from 'node:test';
import {JSDOM} from 'jsdom';
import {Client} from 'buildscale';
import {CHAT, json, refusal, streamed, url} from './streaming.js';

const {window} = new JSDOM('<!doctype html><main></main>');
const frames = [];
Object.assign(globalThis, {
  window, document: window.document, requestAnimationFrame: draw => frames.push(draw), cancelAnimationFrame: number => { frames[number - 1] = undefined; },
});
// Newer ones than Node.js 20 have one that cannot be assigned.
Object.defineProperty(globalThis, 'navigator', {value: window.navigator, configurable: true});
// They look for a document when they are loaded.
const {createElement} = await import('react');
const {createRoot} = await import('react-dom/client');

export const main = window.document.querySelector('main');
/** The root that shows the component of a test. */
export const page = {root: undefined};
afterEach(() => {
  page.root?.unmount();
  main.innerHTML = '';
});

/** Waits until this holds; frames come meanwhile, unless the test draws them. */
export async function until(holds, draws = true) {
  for (const late = AbortSignal.timeout(20_000); !holds(); await new Promise(setImmediate)) {
    assert.ok(!late.aborted, `it does not hold: ${holds}\n${main.textContent}`);
    if (draws) draw();
  }
}
/** A frame of the page. */
export const draw = () => frames.splice(0).forEach(one => one?.());

/** A hub with one chat. `asked` has what else it was asked for. */
export function fake(view = {}) {
  const hub = {looks: 0, streams: [], asked: [], keys: [], gone: false, away: 0};
  hub.client = new Client({url, patienceMs: 0, fetch: async (at, init) => {
    const {pathname, searchParams} = new URL(at);
    if (pathname.endsWith('/events')) {
      if (hub.refusal) return hub.refusal;
      hub.streams.push({...streamed(init), actors: searchParams.get('actors')});
      return hub.streams.at(-1).answer;
    }
    if (init.method === 'POST') {
      hub.asked.push([pathname.split('/').slice(5).join('/'), init.body && JSON.parse(init.body)]);
      hub.keys.push(init.headers.get('idempotency-key'));
      if (await hub.lost) throw new TypeError('the answer was lost');
      return await hub.refused ? json(refusal('CONFLICT'), 409) : json({chat_id: CHAT});
    }
    hub.looks++;
    if (hub.away-- > 0) throw new TypeError('the network is down');
    if (hub.page && searchParams.get('before') !== `${Number.MAX_SAFE_INTEGER}`) return hub.page();
    return hub.gone ? json(refusal('NOT_FOUND'), 404) : json({messages: [], last_seq: 0, status: 'idle', mode: 'build', ...view});
  }});
  let number = 0;
  hub.tell = (event, data, kind = 'chat') => {
    number++;
    const inner = JSON.stringify({[`${kind}_id`]: CHAT, id: number, event, data});
    hub.streams.at(-1).send(`id: 7\nevent: ${kind}_event\ndata: ${inner}\n\n`);
  };
  return hub;
}

/** Shows what a hook gives; `seen` has the last one, and how often it was rendered. */
export function shown(hook, options) {
  const seen = {renders: 0};
  const Shown = () => {
    seen.renders++;
    seen.view = hook(options);
    return seen.view.messages?.map(({id, text}) => createElement('p', {key: id}, text)) ?? seen.view.status;
  };
  return {seen, element: createElement(Shown)};
}

export function mount(element) {
  page.root = createRoot(main);
  page.root.render(element);
}
