// A flow behind the clients of OpenAI, the AI SDK, AG-UI and LangGraph: each begins it as it begins a persona, and one answers what another has begun.
import { useChat } from '@ai-sdk/react';
import { HttpAgent } from '@ag-ui/client';
import { DefaultChatTransport } from 'ai';
import OpenAI from 'openai';
import { createElement } from 'react';
import { create } from 'react-test-renderer';
import { base, finish, until, workspace } from './common.mjs';
import { client, makeShout } from './langgraph-common.mjs';

globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const here = `${base}/api/v1/workspaces/${workspace}`;
const input = (items) => JSON.stringify({ items });
const out = {};
await makeShout();

const openai = new OpenAI({ apiKey: 'any', baseURL: `${base}/openai/v1`, defaultHeaders: { 'X-Workspace-Id': workspace }, maxRetries: 0 });
out.models = (await openai.models.list()).data.some(({ id }) => id === 'shout');
const first = await openai.responses.create({ model: 'shout', input: input(['a', 'b']) });
const call = first.output.find(({ type }) => type === 'function_call');
const answer = { type: 'function_call_output', call_id: call.call_id, output: '{"colour": "red"}' };
const events = [];
for await (const event of await openai.responses.create({ model: 'shout', input: [answer], stream: true })) events.push(event);
const done = events.at(-1);
out.responses = [call.name, done.type, JSON.parse(done.response.output.at(-1).content[0].text)];
out.read = (await openai.responses.retrieve(done.response.id)).status;
out.numbers = new Set(events.map(({ sequence_number: number }) => number)).size === events.length;
const rest = [];
for await (const event of await openai.responses.retrieve(done.response.id, { stream: true, starting_after: events.at(-3).sequence_number })) rest.push(event.type);
out.rest = rest.length;
const completion = await openai.chat.completions.create({ model: 'shout', messages: [{ role: 'user', content: input(['z']) }] });
out.completion = [completion.choices[0].finish_reason, completion.choices[0].message.tool_calls[0].function.name];
out.once = await openai.responses.create({ model: 'shout', previous_response_id: done.response.id, input: 'again' }).then(
  () => 'taken',
  (error) => [error.status, error.code],
);

// Begun by the AI SDK, answered by AG-UI.
let chat;
const transport = new DefaultChatTransport({ api: `${here}/ai-sdk/chat`, body: { role: 'shout' } });
create(createElement(() => {
  chat = useChat({ transport });
  return null;
}));
await until(() => chat);
void chat.sendMessage({ text: input(['c']) });
const calls = () => chat.messages.at(-1)?.parts.filter((part) => part.type === 'dynamic-tool' || part.type.startsWith('tool-')) ?? [];
await until(() => chat.status === 'ready' && calls().length === 3);
out.begun = calls().map((part) => [part.toolName ?? part.type.slice(5), part.state]);
const watched = await transport.reconnectToStream({ chatId: chat.id });
const chunks = [];
for await (const chunk of watched) chunks.push(chunk);
out.watched = chunks.filter(({ type }) => type === 'tool-input-available').map(({ toolName }) => toolName);
const agent = new HttpAgent({ url: `${here}/ag-ui`, threadId: chat.id });
await agent.runAgent({ resume: [{ interruptId: calls().at(-1).toolCallId, status: 'resolved', payload: { colour: 'blue' } }] });
out.answered = JSON.parse(agent.messages.filter(({ role }) => role === 'assistant').at(-1).content);
out.over = await transport.reconnectToStream({ chatId: chat.id });

// Begun by AG-UI, answered by LangGraph.
const other = new HttpAgent({ url: `${here}/ag-ui`, threadId: 'a-flow-of-my-own' });
other.addMessage({ id: 'one', role: 'user', content: input(['d', 'e']) });
const seen = [];
let interrupts;
await other.runAgent({ forwardedProps: { role: 'shout' } }, {
  onToolCallStartEvent: ({ event }) => { seen.push(event.toolCallName); },
  onRunFinishedEvent: ({ event }) => { interrupts = event.outcome.interrupts; },
});
out.interrupted = [seen, interrupts[0].message];
out.values = await client.runs.wait('a-flow-of-my-own', 'shout', { command: { resume: { colour: 'red' } } });
finish(out);
