// One run, in one turn: begun by `useChat`, watched by the console in Chromium, answered by AG-UI, resumed by the client of LangGraph, and read by the
// clients of OpenAI and Agent2Agent.
import { useChat } from '@ai-sdk/react';
import { ClientFactory } from '@a2a-js/sdk/client';
import { HttpAgent } from '@ag-ui/client';
import { Client } from '@langchain/langgraph-sdk';
import { DefaultChatTransport } from 'ai';
import OpenAI from 'openai';
import { chromium } from 'playwright-core';
import { createElement } from 'react';
import { create } from 'react-test-renderer';
import { base, chromiumProgram, finish, until, workspace } from './common.mjs';

globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const here = `${base}/api/v1/workspaces/${workspace}`;
const openai = new OpenAI({ apiKey: 'any', baseURL: `${base}/openai/v1`, defaultHeaders: { 'X-Workspace-Id': workspace } });
const out = {};

let chat;
const transport = new DefaultChatTransport({ api: `${here}/ai-sdk/chat` });
create(createElement(() => {
  chat = useChat({ transport });
  return null;
}));
await until(() => chat);
void chat.sendMessage({ text: 'dress the poet' });
const call = () => chat.messages.at(-1)?.parts.find((part) => part.type === 'dynamic-tool');
await until(() => chat.status === 'ready' && call()?.state === 'approval-requested');
const { chatId, turnId } = chat.messages.at(-1).metadata;
out.begun = [call().toolName, call().state];

const browser = await chromium.launch({ executablePath: chromiumProgram, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const page = await browser.newPage();
// A machine may be busy with other tests.
page.setDefaultTimeout(60_000);
await page.goto(`${base}/#/w/${workspace}/chats/${chatId}`);
const watched = page.getByRole('log', { name: 'Conversation' });
const card = page.getByRole('region', { name: 'The agent asks for permission' });
await card.getByText('write', { exact: true }).first().waitFor();
out.watched = [await watched.getByText('May I?').count()];

const response = `resp_${chatId}${turnId}`.replaceAll('-', '');
const events = [];
for await (const event of await openai.responses.retrieve(response, { stream: true })) events.push(event);
out.streamed = [events.at(-1).type, events.at(-1).response.output.find((item) => item.type === 'mcp_approval_request').name];

// The client of AG-UI knows the thread by the id that the AI SDK has given it.
const agent = new HttpAgent({ url: `${here}/ag-ui`, threadId: chat.id });
await agent.runAgent({ resume: [{ interruptId: call().approval.id, status: 'resolved', payload: { approved: true } }] });
out.answered = agent.messages.filter((message) => message.role === 'assistant').at(-1).content;
await card.waitFor({ state: 'detached' });
const form = page.getByRole('form', { name: 'The agent asks' });
await form.getByText('Which colour?').waitFor();
out.watched.push(await page.getByText('allowed', { exact: true }).count());

const { runs, threads } = new Client({ apiUrl: `${base}/langgraph`, apiKey: 'any', defaultHeaders: { 'X-Workspace-Id': workspace } });
out.asks = (await threads.get(chat.id)).status;
const resumed = [];
for await (const { event, data } of runs.stream(chat.id, 'assistant', { command: { resume: { colour: 'red' } }, streamMode: 'messages-tuple' })) {
  if (event === 'messages' && data[0].type === 'AIMessageChunk') resumed.push(data[0].content);
}
out.resumed = resumed.join('');
await form.waitFor({ state: 'detached' });
await watched.getByText('The poet wears red.').waitFor();
out.watched.push(await watched.getByText('The poet wears red.').count());
await browser.close();

const rest = await openai.responses.retrieve(`${response}_2`);
out.read = [rest.status, rest.output_text, (await openai.responses.retrieve(response)).status];
const values = (await runs.join(chat.id, `${turnId}_2`)).messages;
out.joined = [values.map(({ type }) => type), values.at(-1).content, (await runs.get(chat.id, turnId)).status];
const others = await new ClientFactory().createFromUrl(base);
const task = await others.getTask({ tenant: '', id: [chatId, turnId].map((id) => id.replaceAll('-', '')).join('-'), historyLength: undefined }, { serviceParameters: { 'X-Workspace-Id': workspace } });
out.task = [task.status.state, task.artifacts.find((one) => one.artifactId === 'answer').parts[0].content.value];
finish(out);
