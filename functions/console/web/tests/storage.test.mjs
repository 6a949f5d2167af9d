// The memory of the page, and the signal that ends the pauses of its streams: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {getEventListeners} from 'node:events';
import {test} from 'node:test';
import {address} from './modules.mjs';

const module = name => new URL(`../src/${name}`, import.meta.url);
const blocked = () => { throw new DOMException('The request was denied.', 'SecurityError'); };

/** A storage that takes values of up to `room` characters. */
function storage(room) {
  const kept = new Map();
  return {
    kept,
    get length() { return kept.size; },
    key: at => [...kept.keys()][at] ?? null,
    getItem: key => kept.get(key) ?? null,
    setItem: (key, value) => {
      if (value.length > room) throw new DOMException('It is full.', 'QuotaExceededError');
      kept.set(key, value);
    },
    removeItem: key => kept.delete(key),
  };
}
const provide = (name, get) => Object.defineProperty(globalThis, name, {configurable: true, get});

test('a browser that blocks its storage leaves the page a memory of its own', async () => {
  provide('localStorage', blocked);
  provide('sessionStorage', blocked);
  const {local, tab} = await import(await address(module('storage.ts')));
  for (const memory of [local, tab]) {
    assert.equal(memory.get('draft'), undefined);
    assert.equal(memory.set('draft', 'words'), false, 'a reload would lose it');
    assert.deepEqual([memory.get('draft'), memory.isOwn('draft')], ['words', true]);
    memory.set('theme', 'dark');
    memory.removeAll(key => key !== 'theme');
    assert.deepEqual([memory.get('draft'), memory.get('theme')], [undefined, 'dark']);
    memory.remove('theme');
    assert.equal(memory.get('theme'), undefined);
  }
});

test('a value for which a storage has no room is newer than the one that it has', async () => {
  const small = storage(5);
  provide('localStorage', () => small);
  const {local} = await import(await address(module('storage.ts')));
  assert.equal(local.set('draft', 'short'), true);
  assert.equal(local.set('draft', 'much longer'), false);
  assert.deepEqual([local.get('draft'), small.kept.get('draft')], ['much longer', 'short']);
  assert.equal(local.set('draft', 'again'), true);
  assert.deepEqual([local.get('draft'), local.isOwn('draft')], ['again', false]);
  local.set('draft', 'much longer');
  local.removeAll(key => key === 'draft');
  assert.deepEqual([local.get('draft'), small.kept.size], [undefined, 0]);
});

test('streams that pause and connect again leave no listener', async t => {
  const added = t.mock.fn();
  globalThis.addEventListener = added;
  const {wake, reconnectNow} = await import(await address(module('wake.ts')));
  const {pause} = await import(await address(new URL('../../../../clients/typescript/src/pause.ts', import.meta.url)));
  const before = added.mock.callCount();
  for (let times = 0; times < 20; times++) await pause(0, undefined, wake());
  assert.equal(added.mock.callCount(), before, 'no pause listens to the network itself');
  assert.equal(getEventListeners(wake(), 'abort').length, 0);
  // All pauses end when the person asks for it, and when the network is back.
  const [[event, back]] = added.mock.calls.map(call => call.arguments);
  assert.equal(event, 'online');
  for (const end of [reconnectNow, back]) {
    const pauses = Promise.all([pause(1e9, undefined, wake()), pause(1e9, undefined, wake())]);
    end();
    await pauses;
  }
  assert.equal(wake().aborted, false, 'the next pause is one');
});
