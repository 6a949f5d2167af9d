// The readings of the page: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {QueryObserver} from '@tanstack/react-query';
import {address} from './modules.mjs';

const {Queries} = await import(await address(new URL('../src/queries.ts', import.meta.url)));

/** A list that a page shows, and its readings; the test answers each. */
function shown(queries) {
  const readings = [];
  const queryFn = () => new Promise(answer => { readings.push({answer}); });
  const observer = new QueryObserver(queries, {queryKey: ['w', 'files', 'plan'], queryFn});
  const leave = observer.subscribe(() => undefined);
  const told = async data => {
    for (let turns = 0; turns < 100 && observer.getCurrentResult().data !== data; turns++) await new Promise(setImmediate);
    return observer.getCurrentResult().data;
  };
  return {readings, told, leave};
}

test('a change during the first reading is shown, however long that reading takes', async () => {
  const queries = new Queries();
  const {readings, told, leave} = shown(queries);
  const changed = [queries.invalidateQueries({queryKey: ['w', 'files']}), queries.invalidateQueries({queryKey: ['w', 'files']})];
  assert.equal(readings.length, 1, 'the first reading is not begun anew by each change');
  readings[0].answer('2 of 3');
  assert.equal(await told('2 of 3'), '2 of 3');
  readings.slice(1).forEach(({answer}) => answer('3 of 3'));
  assert.equal(await told('3 of 3'), '3 of 3');
  await Promise.all(changed);
  leave();
});

test('a list that was read is read once per change, and other lists are not', async () => {
  const queries = new Queries();
  const {readings, told, leave} = shown(queries);
  readings[0].answer('1');
  await told('1');
  await queries.invalidateQueries({queryKey: ['w', 'chats']});
  assert.equal(readings.length, 1);
  const changed = queries.invalidateQueries({queryKey: ['w', 'files']});
  readings[1].answer('2');
  await changed;
  assert.deepEqual([readings.length, await told('2')], [2, '2']);
  leave();
});
