// A flow whose agent needs a permission, behind the clients of AG-UI, Agent2Agent and LangGraph: each shows the request of the agent as its own, and
// takes the answer.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { ClientFactory } from '@a2a-js/sdk/client';
import { HttpAgent } from '@ag-ui/client';
import { base, finish, until, workspace } from './common.mjs';
import { all, client, makeFlow, of, refused } from './langgraph-common.mjs';

const here = `${base}/api/v1/workspaces/${workspace}`;
const out = {};
await makeFlow('keep', {
  'workflow.yaml': `nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: keep, kind: agent, role: linear, context: none, agent_id: keeper, prompt: 'Keep it', tools: [write]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: keep}, {from: keep, to: end}]
`,
  'agents.yaml': 'agents:\n  - {id: keeper, system: You are a keeper of skills.}\n',
  'tools.yaml': 'tools:\n  - {id: write}\n',
});

const agent = new HttpAgent({ url: `${here}/ag-ui`, threadId: 'keep-by-ag-ui' });
agent.addMessage({ id: randomUUID(), role: 'user', content: '{}' });
let interrupts;
await agent.runAgent({ forwardedProps: { role: 'keep' } }, { onRunFinishedEvent: ({ event }) => { interrupts = event.outcome.interrupts; } });
out.agUi = [interrupts.length, interrupts[0].reason, interrupts[0].metadata.tool];
await agent.runAgent({ resume: [{ interruptId: interrupts[0].id, status: 'resolved', payload: { approved: false, reason: 'no' } }] });
out.agUi.push(agent.messages.filter(({ role }) => role === 'assistant').at(-1).content);

const options = { serviceParameters: { 'X-Workspace-Id': workspace } };
const others = await new ClientFactory().createFromUrl(base);
const send = (text, more, configuration) => {
  const parts = [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }];
  const message = { messageId: randomUUID(), role: 1, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined, parts, ...more };
  return others.sendMessage({ tenant: '', metadata: undefined, configuration, message }, options);
};
// The request of the agent comes to the receiver of the task's notifications.
const notices = [];
const receiver = createServer(async (request, answer) => {
  let body = '';
  for await (const piece of request) body += piece;
  const { state, message } = JSON.parse(body).statusUpdate.status;
  notices.push([state, message.parts[1]?.data.tool ?? null]);
  answer.writeHead(204).end();
});
await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${receiver.address().port}/`;
const taskPushNotificationConfig = { tenant: '', id: 'mine', taskId: '', url, token: '', authentication: undefined };
const task = await send('{}', { metadata: { skill: 'keep' } }, { acceptedOutputModes: [], taskPushNotificationConfig, historyLength: 0, returnImmediately: false });
const kept = await send('declined: not now', { taskId: task.id });
out.a2a = [task.status.message.parts[1].content.value.tool, kept.id === task.id, kept.artifacts[0].parts[0].content.value];
await until(() => notices.length === 2);
receiver.close();
out.a2a.push(notices);

const { runs, threads } = client;
const thread = (await threads.create()).thread_id;
const first = await all(runs.stream(thread, 'keep', { input: {}, streamMode: ['values', 'updates', 'custom'] }));
const [interrupt] = of(first, 'values').at(-1).__interrupt__;
out.langgraph = {
  asks: [interrupt.value.action_requests[0].name, interrupt.value.node, first.at(-1).data.status],
  thread: (await threads.get(thread)).status,
  next: (await threads.getState(thread)).tasks.map(({ name, interrupts: open }) => [name, open[0].id === interrupt.id]),
  found: (await threads.search({ metadata: { graph_id: 'keep' }, status: 'interrupted' })).length,
};
const approved = { command: { resume: { decisions: [{ type: 'approve' }] } } };
out.langgraph.values = await runs.wait(thread, 'keep', approved);
out.langgraph.runs = (await runs.list(thread)).map(({ status }) => status);
out.langgraph.once = await refused(() => runs.wait(thread, 'keep', approved));
const file = `${here}/files/by-path?path=/system/skills/kept/SKILL.md`;
out.written = await until(async () => (await fetch(file)).status === 200);
const waiting = await (await fetch(`${here}/waiting`)).json();
out.left = waiting.waiting.length;
finish(out);
