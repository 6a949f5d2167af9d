// One turn: begun by the AI SDK, watched by the client of OpenAI, answered by AG-UI, and read by the client of OpenAI. The thread goes on with a
// question that the client of LangGraph resumes.
import { Chat } from '@ai-sdk/react';
import { HttpAgent } from '@ag-ui/client';
import { Client } from '@langchain/langgraph-sdk';
import { DefaultChatTransport } from 'ai';
import OpenAI from 'openai';
import { base, finish, workspace } from './common.mjs';

const here = `${base}/api/v1/workspaces/${workspace}`;
const openai = new OpenAI({ apiKey: 'any', baseURL: `${base}/openai/v1`, defaultHeaders: { 'X-Workspace-Id': workspace } });
const out = {};

const chat = new Chat({ transport: new DefaultChatTransport({ api: `${here}/ai-sdk/chat` }) });
await chat.sendMessage({ text: 'become a poet' });
const { chatId, turnId } = chat.lastMessage.metadata;
out.begun = chat.lastMessage.parts.find((part) => part.type === 'dynamic-tool').state;

const response = `resp_${chatId}${turnId}`.replaceAll('-', '');
const events = [];
for await (const event of await openai.responses.retrieve(response, { stream: true })) events.push(event);
const asked = events.at(-1).response.output.find((item) => item.type === 'mcp_approval_request');
out.watched = [events.at(-1).type, asked.name];

// The client of AG-UI knows the thread by the id that the AI SDK has given it.
const agent = new HttpAgent({ url: `${here}/ag-ui`, threadId: chat.id });
const interruptId = chat.lastMessage.parts.find((part) => part.type === 'dynamic-tool').approval.id;
await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] });
out.answered = agent.messages.filter((message) => message.role === 'assistant').at(-1).content;

const rest = await openai.responses.retrieve(`${response}_1`);
out.read = [rest.status, rest.output_text, rest.previous_response_id === response];

// For the client of LangGraph the turn is a run, and the answer to the request another one.
const apiUrl = `${base}/langgraph`;
const { runs, threads } = new Client({ apiUrl, apiKey: 'any', defaultHeaders: { 'X-Workspace-Id': workspace } });
const values = (await runs.join(chat.id, `${turnId}_1`)).messages;
out.joined = [values.map(({ type }) => type), values.at(-1).content, (await runs.get(chat.id, turnId)).status];
await chat.sendMessage({ text: 'ask me' });
out.asks = (await threads.get(chat.id)).status;
const resumed = [];
for await (const { event, data } of runs.stream(chat.id, 'assistant', { command: { resume: { colour: 'red' } }, streamMode: 'messages-tuple' })) {
  if (event === 'messages' && data[0].type === 'AIMessageChunk') resumed.push(data[0].content);
}
const question = `resp_${chatId}${chat.lastMessage.metadata.turnId}`.replaceAll('-', '');
out.resumed = [resumed.join(''), (await openai.responses.retrieve(`${question}_1`)).output_text];
finish(out);
