// The rows of a chat and the states of nodes that events are folded into: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {address} from './modules.mjs';

const {fold, NO_RUN} = await import(await address(new URL('../src/flows/fold.ts', import.meta.url)));
const {EMPTY, Folding, isShared, rowsOf} = await import(await address(new URL('../src/chat/fold.ts', import.meta.url)));

/** A run whose node was started and has ended with this error. */
function ended(error) {
  const finished = {node: 'write', attempt: 1, status: 'failure', output: null, error, metrics: {duration_ms: 5}};
  return fold(NO_RUN, [
    {id: 1, event: 'node_started', data: {node: 'write', attempt: 1}},
    {id: 2, event: 'node_finished', data: finished},
  ]);
}

test('a node that a stop ended did not fail, and others with its code did', () => {
  const stopped = ended({code: 'CANCELLED', message: 'stopped: user_cancelled'});
  assert.equal(stopped.nodes.get('write').status, 'skipped');
  assert.deepEqual(stopped.steps, []);
  const failed = ended({code: 'CANCELLED', message: 'the agent did not come to an end: stopped'});
  assert.equal(failed.nodes.get('write').status, 'failed');
  assert.deepEqual(failed.steps.map(({text, tone}) => [text, tone]), [['failed: the agent did not come to an end: stopped', 'bad']]);
});

test('subtasks are counted as everywhere on the page', () => {
  const forked = total => fold(NO_RUN, [{id: 1, event: 'forked', data: {node: 'split', kind: 'subtask', to: ['work'], total}}]);
  assert.deepEqual([1, 2_000].map(total => forked(total).steps[0].text), ['made 1 subtask', 'made 2,000 subtasks']);
});

test('a command that begins after its wait is not shown as one that waits', () => {
  const [call, other] = ['k1', 'k2'];
  const folding = new Folding(EMPTY);
  const waits = (event, data) => {
    folding.add({id: 1, event, data});
    return folding.done().waiting;
  };
  const update = content => ({sessionUpdate: 'tool_call_update', toolCallId: call, status: 'in_progress', ...(content ? {content} : {})});
  assert.equal(waits('call', {call_id: call, tool: 'exec', args: {}}), undefined);
  assert.equal(waits('waiting', {reason: 'sandbox', call_id: call}), 'Waits for the sandbox');
  assert.equal(waits('agent_update', {call_id: other, update: update()}), 'Waits for the sandbox', 'it is about a call that is not known');
  assert.equal(waits('agent_update', {call_id: call, update: update()}), undefined);
  assert.equal(folding.done().rows.find(row => row.kind === 'call').live, undefined, 'there is no output yet');
});

/** The events of a turn that was interrupted and asked for permission, with the messages that its history has. */
const turn = [
  {event: 'message', data: {message_id: 'u', role: 'user', content: 'Go', files: []}},
  {event: 'turn_started', data: {turn_id: 't', attempt: 1}},
  {event: 'message', data: {message_id: 'a', role: 'assistant', content: 'I look.'}},
  {event: 'call', data: {call_id: 'one', tool: 'read', args: {path: 'x.md'}, path: '/projects/x.md'}},
  {event: 'turn_started', data: {turn_id: 't', attempt: 2}},
  {event: 'observation', data: {call_id: 'one', tool: 'read', output: 'x', success: true}},
  {event: 'permission_required', data: {permission_id: 'p', call_id: 'two', tool: 'exec', args: {}, category: 'exec', reason: '', expires_at: '2030-01-01T00:00:00Z'}},
  {event: 'permission_resolved', data: {permission_id: 'p', outcome: 'approved', by: 'me'}},
  {event: 'call', data: {call_id: 'two', tool: 'exec', args: {}}},
  {event: 'observation', data: {call_id: 'two', tool: 'exec', output: 'y', success: true}},
  {event: 'message', data: {message_id: 'b', role: 'assistant', content: 'Done.'}},
  {event: 'done', data: {turn_id: 't', stop_reason: 'end_turn'}},
].map((one, at) => ({id: at + 1, ...one}));
const history = [
  {id: 'u', seq: 1, role: 'user', content: 'Go'},
  {id: 'a', seq: 3, role: 'assistant', content: 'I look.', calls: [{call_id: 'one', tool: 'read', args: {path: 'x.md'}}, {call_id: 'two', tool: 'exec', args: {}}, {call_id: 'never', tool: 'exec', args: {}}]},
  {id: 'x', seq: 6, role: 'tool', call_id: 'one', output: 'x', success: true},
  {id: 'y', seq: 10, role: 'tool', call_id: 'two', output: 'y', success: true},
  {id: 'b', seq: 11, role: 'assistant', content: 'Done.'},
];
const LIVE = ['m:u', 'm:a', 'c:one', 'r:t:2', 'p:p', 'c:two', 'm:b', 't:t'];

test('a reload shows the rows in the order in which they came, also those that no history has', () => {
  const folded = (rows, ahead) => {
    const folding = new Folding({...EMPTY, rows}, ahead);
    turn.forEach(event => folding.add(event));
    return folding.done().rows;
  };
  const live = folded([]);
  assert.deepEqual(live.map(row => row.id), LIVE);
  const before = rowsOf([{id: 'o', seq: 0, role: 'user', content: 'Before'}]);
  const rows = rowsOf(history);
  const again = folded([...before, ...rows], rows.length);
  assert.deepEqual(again.map(row => row.id).filter(id => id !== 'c:never'), ['m:o', ...LIVE]);
  assert.deepEqual(again.find(row => row.id === 'c:one'), live.find(row => row.id === 'c:one'), 'with the path, which no history has');
});

test('the rows of a turn that are older than the page of the history stand before those of the page', () => {
  const rows = rowsOf(history.slice(-1));
  const folding = new Folding({...EMPTY, rows}, rows.length);
  for (const event of turn) {
    folding.add(event);
    const ids = folding.done().rows.map(row => row.id);
    if (!ids.includes('t:t')) assert.equal(ids.at(-1), 'm:b');
  }
  assert.deepEqual(folding.done().rows.map(row => row.id), LIVE);
  assert.equal(folding.ahead, 0);
});

test('a question that a stop or its time closed was not answered, also after a reload', () => {
  for (const success of [true, false]) {
    const asked = [
      {id: 2, event: 'call', data: {call_id: 'c', tool: 'ask_user', args: {}}},
      {id: 3, event: 'question', data: {question_id: 'q', call_id: 'c', questions: [], expires_at: '2030-01-01T00:00:00Z'}},
      {id: 4, event: 'observation', data: {call_id: 'c', tool: 'ask_user', output: 'words', success}},
    ];
    const history = [
      {id: 'a', seq: 2, role: 'assistant', content: '', calls: [{call_id: 'c', tool: 'ask_user', args: {}}]},
      {id: 'x', seq: 4, role: 'tool', call_id: 'c', output: 'words', success},
    ];
    for (const rows of [[], rowsOf(history)]) {
      const folding = new Folding({...EMPTY, rows}, rows.length);
      asked.forEach(event => folding.add(event));
      const {open, answered} = folding.done().rows.find(({kind}) => kind === 'question');
      assert.deepEqual([open, answered], [false, success]);
    }
  }
});

test('times have no 60 s beside minutes, and no 60 min beside hours', async () => {
  const {duration} = await import(await address(new URL('../src/counts.ts', import.meta.url)));
  const shown = [0, 999.4, 999.6, 1_250, 59_949, 59_960, 119_700, 3_599_400, 3_599_700, 9_000_000, 259_200_000].map(duration);
  assert.deepEqual(shown, ['0 ms', '999 ms', '1.0 s', '1.3 s', '59.9 s', '1 min 0 s', '2 min 0 s', '59 min 59 s', '1 h 0 min', '2 h 30 min', '72 h 0 min']);
});

test('a chat in which several people wrote names the authors, from its history and from its events', () => {
  const rows = rowsOf([{id: 'a', seq: 1, role: 'user', content: 'Paint it', user_id: 'ann'}, {id: 'o', seq: 2, role: 'user', content: 'of before'}]);
  assert.deepEqual(rows.map(row => row.author), ['ann', undefined]);
  assert.equal(isShared(rows, ['ann', 'ann']), false);
  assert.equal(isShared(rows, ['ann', undefined]), false, 'the reader is not known yet');
  assert.equal(isShared(rows, ['ann', 'ann', null]), false, 'a message of a program waits');
  assert.equal(isShared(rows, ['ann', 'ann', 'bob']), true, 'a message of another person waits');
  assert.equal(isShared(rows, ['bob', undefined]), true, 'the owner wrote in a part that is not loaded');
  assert.equal(isShared(rows, ['ann', 'bob']), true, 'the words of another person are not those of their reader');
  const folding = new Folding({...EMPTY, rows});
  folding.add({id: 3, event: 'message', data: {message_id: 'b', role: 'user', content: 'in blue', user_id: 'bob'}});
  const more = folding.done().rows;
  assert.equal(more.at(-1).author, 'bob');
  assert.equal(isShared(more, []), true);
});
