import assert from 'node:assert/strict';
import {test} from 'node:test';
import {chosen, faults, quantile, scored} from './score.mjs';

const SEEN = {answer: 'Order paper is done.', end: 'stop', tools: ['update_task'], steps: 2, files: {'/projects/atlas/tasks/order-paper.md': 'status: done'}, versions: {before: {'/a.md': 1}, after: {'/a.md': 1}}};

test('a story is passed when all holds, and each thing that does not hold is told', () => {
  const all = {tools: ['update_task', 'edit'], says: [/paper/], files: {'/projects/atlas/tasks/*paper*': [/done/]}, unchanged: ['/a.md'], plan: 2};
  assert.deepEqual(faults(all, SEEN), []);
  assert.match(faults(all, {...SEEN, tools: []})[0], /none of update_task, edit was called/);
  assert.match(faults(all, {...SEEN, answer: ''})[0], /the answer does not match/);
  assert.match(faults(all, {...SEEN, files: {}})[0], /there is no file/);
  assert.match(faults(all, {...SEEN, files: {'/projects/atlas/tasks/order-paper.md': ''}})[0], /does not match/);
  assert.match(faults(all, {...SEEN, versions: {before: {'/a.md': 1}, after: {'/a.md': 2}}})[0], /\/a\.md was changed/);
  assert.match(faults(all, {...SEEN, steps: 1})[0], /1 steps, of at least 2/);
  assert.match(faults(all, {...SEEN, end: 'error'})[0], /it ended with error/);
  assert.match(faults({no_tools: true}, SEEN)[0], /update_task was called/);
});

test('a star does not reach into folders below', () => {
  assert.equal(faults({files: {'/projects/*': [/done/]}}, SEEN).length, 1);
});

test('messages are counted by label, and rules apart from the model', () => {
  const one = (label, strategy, tokens) => ({label, strategy, tokens, cost: tokens / 1000, ms: tokens});
  const sums = scored([one('simple', 'simple', 0), one('simple', 'tool', 0), one('tool', 'tool', 100), one('complex', 'tool', 300)]);
  assert.deepEqual([sums.count, sums.right, sums.byRule, sums.byRuleRight, sums.tokens], [4, 2, 2, 1, 400]);
  assert.deepEqual(sums.labels.complex, {count: 1, simple: 0, tool: 1, complex: 0});
});

test('a choice of messages is even, and of more than there are it is all', () => {
  assert.deepEqual(chosen([1, 2, 3, 4, 5, 6], 3), [1, 3, 5]);
  assert.deepEqual(chosen([1, 2], 3), [1, 2]);
  assert.equal(quantile([], 0.5), 0);
  assert.equal(quantile([3, 1, 2], 0.5), 2);
});
