// The rows of a chat and the states of nodes that events are folded into: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {test} from 'node:test';
import ts from 'typescript';

/** A module of the page as an address to import. The modules that it names become addresses, too, so it may name those alone that need no page. */
async function address(place) {
  const {outputText} = ts.transpileModule(await readFile(place, 'utf8'), {compilerOptions: {target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true}});
  let text = outputText;
  for (const [named, , path] of outputText.matchAll(/(?<=\sfrom )(['"])(\.[^'"]*)\1/g)) {
    const inside = JSON.stringify(await address(new URL(path, place)));
    text = text.replace(named, () => inside);
  }
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

const {fold, NO_RUN} = await import(await address(new URL('../src/flows/fold.ts', import.meta.url)));
const {EMPTY, Folding} = await import(await address(new URL('../src/chat/fold.ts', import.meta.url)));

/** A run whose node was started and has ended with this error. */
function ended(error) {
  const finished = {node: 'write', attempt: 1, status: 'failure', output: null, error, metrics: {duration_ms: 5}};
  return fold(NO_RUN, [
    {id: 1, event: 'node_started', data: {node: 'write', attempt: 1}},
    {id: 2, event: 'node_finished', data: finished},
  ]);
}

test('a node that was stopped with its task did not fail, and one whose agent was stopped did', () => {
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
