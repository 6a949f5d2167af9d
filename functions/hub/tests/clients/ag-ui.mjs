// The agent of AG-UI: a run with its events and state, interrupts, refusals.
import { randomUUID } from 'node:crypto';
import { HttpAgent } from '@ag-ui/client';
import { base, finish, kept, workspace } from './common.mjs';

const url = `${base}/api/v1/workspaces/${workspace}/ag-ui`;
const agent = () => new HttpAgent({ url, threadId: randomUUID() });
const run = async (of, content, more) => {
  if (content) of.addMessage({ id: randomUUID(), role: 'user', content });
  const events = [];
  await of.runAgent(more, { onEvent: ({ event }) => void events.push(event) });
  const patches = events.filter((event) => event.type === 'STATE_DELTA').flatMap((event) => event.delta);
  return { types: [...new Set(events.map((event) => event.type))], patches, end: events.at(-1) };
};
const said = (of) => of.messages.filter((message) => message.role === 'assistant').map((message) => message.content ?? '');
const out = {};

const whole = agent();
const first = await run(whole, 'state');
out.whole = { types: first.types, texts: said(whole), files: Object.keys(whole.state.files), end: first.end.outcome.type };
out.tools = whole.messages.filter((message) => message.role === 'tool').length;
await run(whole, 'say it', { context: [{ description: 'The page', value: 'Invoice 7' }] });
out.again = said(whole).at(-1);
out.context = await kept('context.md');

// The client has applied the patches of the plan to the state.
const planned = agent();
const { patches } = await run(planned, 'arrange the week');
const { path, ...plan } = planned.state.plan;
out.plan = [plan, path.startsWith('/chats/'), patches.filter((patch) => patch.path === '/plan').length];

const broken = agent();
const { end } = await run(broken, 'break');
out.failed = [end.type, end.code, end.message];

const wish = agent();
const asks = await run(wish, 'become a poet');
const [interrupt] = asks.end.outcome.interrupts;
out.interrupt = [interrupt.reason, interrupt.metadata.tool, interrupt.responseSchema.required];
const payload = { approved: false, reason: 'no poets' };
await run(wish, null, { resume: [{ interruptId: interrupt.id, status: 'resolved', payload }] });
out.declined = said(wish).at(-1);

const question = agent();
const [open] = (await run(question, 'ask me')).end.outcome.interrupts;
await run(question, null, { resume: [{ interruptId: open.id, status: 'resolved', payload: { colour: 'blue' } }] });
out.answered = [open.message, said(question).at(-1)];

// The client runs a function of its own, and the run goes on with the result.
const weather = agent();
const tools = [{ name: 'weather', description: 'Tells the weather.', parameters: { type: 'object', properties: { place: { type: 'string' } } } }];
out.functions = [];
for (let next = await run(weather, 'weather', { tools }); ; next = await run(weather, null, { tools })) {
  const [call] = weather.messages.at(-1).toolCalls ?? [];
  if (!call) break;
  const { place } = JSON.parse(call.function.arguments);
  out.functions.push([call.function.name, place, next.end.outcome.type]);
  weather.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call.id, content: place === 'Rome' ? 'warm' : 'cold' });
}
out.functions.push(said(weather).at(-1));

const refused = agent();
refused.addMessage({ id: '1', role: 'user', content: 'x' });
try {
  await refused.runAgent({ forwardedProps: { temperature: 1 } });
  out.refused = 'taken';
} catch (error) {
  out.refused = [error.status, error.payload.error.details.field];
}
finish(out);
