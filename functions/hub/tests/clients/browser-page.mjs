// The page of browser.mjs: a chat by `useStream` and one by `useChat`, each of which it finds again, and a function that drives the agent of AG-UI.
import { HttpAgent } from '@ag-ui/client';
import { useChat } from '@ai-sdk/react';
import { useStream } from '@langchain/langgraph-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { createElement as h, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const workspace = new URLSearchParams(location.search).get('workspace');
const here = `${location.origin}/api/v1/workspaces/${workspace}`;
const THREAD = 'thread';
const SAID = 'said';

/** A chat as each of them shows it. `asks` is the label of the button that decides, if a person has to. */
function View({ name, texts, status, asks, say, decide, stop }) {
  const [words, setWords] = useState('');
  const submit = (event) => {
    event.preventDefault();
    say(words);
    setWords('');
  };
  return h('section', { 'aria-label': name },
    h('ol', { role: 'log' }, texts.map((text, key) => h('li', { key }, text))),
    h('output', { role: 'status' }, status),
    h('form', { onSubmit: submit }, h('input', { value: words, onChange: ({ target }) => setWords(target.value) })),
    asks && h('button', { onClick: decide }, asks),
    h('button', { onClick: stop }, 'Stop'));
}

function UseStream() {
  const [threadId, setThreadId] = useState(() => sessionStorage.getItem(THREAD));
  const [isStopped, setStopped] = useState(false);
  const stream = useStream({
    apiUrl: `${location.origin}/langgraph`, assistantId: 'assistant', defaultHeaders: { 'X-Workspace-Id': workspace },
    fetchStateHistory: true, reconnectOnMount: true, threadId,
    onThreadId: (id) => {
      sessionStorage.setItem(THREAD, id);
      setThreadId(id);
    },
  });
  const asked = stream.isLoading ? undefined : stream.interrupt?.value?.actionRequests?.[0]?.name;
  return h(View, {
    name: 'useStream', texts: stream.messages.map(({ content }) => content), asks: asked && `Approve ${asked}`,
    // A stop is over when the client has read the state that it then shows.
    status: isStopped ? 'stopped' : stream.isLoading ? 'busy' : 'ready',
    say: (content) => void stream.submit({ messages: [{ type: 'human', content }] }),
    decide: () => void stream.submit(null, { command: { resume: { decisions: [{ type: 'approve' }] } } }),
    stop: () => void stream.stop().then(() => setStopped(true)),
  });
}

const api = `${here}/ai-sdk/chat`;
const transport = new DefaultChatTransport({ api });

function UseChat() {
  const { id, messages, status, sendMessage, addToolApprovalResponse } = useChat({
    id: 'chat-in-a-browser', transport, messages: JSON.parse(sessionStorage.getItem(SAID) ?? '[]'), resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    sessionStorage.setItem(SAID, JSON.stringify(messages));
  }, [messages]);
  const asked = messages.at(-1)?.parts.find(({ state }) => state === 'approval-requested');
  const text = ({ parts }) => parts.filter(({ type }) => type === 'text').map((part) => part.text).join(' ');
  return h(View, {
    name: 'useChat', texts: messages.map(text), asks: asked && `Decline ${asked.toolName}`,
    status: status === 'submitted' || status === 'streaming' ? 'busy' : status,
    say: (words) => void sendMessage({ text: words }),
    decide: () => void addToolApprovalResponse({ id: asked.approval.id, approved: false, reason: 'no poets' }),
    stop: () => void fetch(`${api}/${id}/stop`, { method: 'POST' }),
  });
}

globalThis.runAgUi = async () => {
  const url = `${here}/ag-ui`;
  const agent = (threadId) => new HttpAgent({ url, threadId });
  const run = async (of, content, more) => {
    if (content) of.addMessage({ id: crypto.randomUUID(), role: 'user', content });
    const types = [];
    let interrupts = [];
    await of.runAgent(more, {
      onEvent: ({ event }) => void types.push(event.type),
      onRunFinishedEvent: ({ event }) => { interrupts = event.outcome.interrupts ?? []; },
    });
    return { types, interrupts };
  };
  const last = (of) => of.messages.filter(({ role }) => role === 'assistant').at(-1).content;
  const whole = agent('whole-in-a-browser');
  const { types } = await run(whole, 'state');
  const wish = agent('wish-in-a-browser');
  const { interrupts: [asked] } = await run(wish, 'become a poet');
  await run(wish, null, { resume: [{ interruptId: asked.id, status: 'resolved', payload: { approved: false, reason: 'no poets' } }] });
  const streamed = types.filter((type) => type === 'TEXT_MESSAGE_CONTENT').length > 4;
  return { texts: [last(whole), last(wish)], files: Object.keys(whole.state.files), asked: asked.metadata.tool, streamed };
};

createRoot(document.getElementById('root')).render(h('main', null, h(UseStream), h(UseChat)));
