// The states of nodes that a run's events are folded into: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {test} from 'node:test';
import ts from 'typescript';

const source = await readFile(new URL('../src/flows/fold.ts', import.meta.url), 'utf8');
const {outputText} = ts.transpileModule(source, {compilerOptions: {target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true}});
const {fold, NO_RUN} = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);

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
