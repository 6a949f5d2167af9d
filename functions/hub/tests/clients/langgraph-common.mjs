// What the programs of LangGraph have in common: its client in the workspace of the test, and ways to look at runs.
import { Client } from '@langchain/langgraph-sdk';
import { base, workspace } from './common.mjs';

export const client = new Client({
  apiUrl: `${base}/langgraph`,
  apiKey: 'any',
  defaultHeaders: { 'X-Workspace-Id': workspace },
  callerOptions: { maxRetries: 0 },
});
export const said = (content) => ({ input: { messages: [{ type: 'human', content }] } });
export const texts = (values) => values.messages.filter(({ type }) => type === 'ai').map(({ content }) => content);
export const of = (events, name) => events.filter(({ event }) => event === name).map(({ data }) => data);

export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

export async function refused(wrong) {
  try {
    await wrong();
    return 'taken';
  } catch (error) {
    const { code, details } = JSON.parse(error.text).error;
    return [error.status, code, details.field];
  }
}

// A flow with a question, a split and a merge.
const shout = `nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: check, kind: deterministic, role: linear, context: none, ask: {questions: [{name: colour, question: 'Which colour?', schema: {enum: [red, blue]}}]}}
  - {id: parts, kind: deterministic, role: split, context: none, split: {over: outputs.begin.items, as: item, max_subtasks: 9}}
  - {id: each, kind: deterministic, role: linear, context: none, op: {expr: "input.item + '!'"}}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all, on_failure: fail}, op: {expr: "{'all': input.map(one, one.output), 'colour': outputs.check.colour}"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: check}
  - {from: check, to: parts}
  - {from: parts, to: each}
  - {from: each, to: join}
  - {from: join, to: end}
`;

export const makeShout = () => makeFlow('shout', { 'workflow.yaml': shout });

export async function makeFlow(name, files) {
  for (const [file, content] of Object.entries(files)) {
    const body = JSON.stringify({ path: `/system/flows/${name}/${file}`, content });
    const headers = { 'content-type': 'application/json' };
    const made = await fetch(`${base}/api/v1/workspaces/${workspace}/files`, { method: 'POST', headers, body });
    if (!made.ok) throw new Error(await made.text());
  }
}
