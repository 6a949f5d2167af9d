// `useStream` of LangGraph in a React component: a message, an interrupt that is resumed, a stop, and a page that is opened again.
import { createElement } from 'react';
import { create } from 'react-test-renderer';
import { useStream } from '@langchain/langgraph-sdk/react';
import { base, finish, until, workspace } from './common.mjs';

globalThis.IS_REACT_ACT_ENVIRONMENT = false;
const headers = { 'X-Workspace-Id': workspace };
const page = (options) => {
  const shown = { threads: [] };
  const Page = () => {
    const stream = useStream({
      apiUrl: `${base}/langgraph`, assistantId: 'assistant', defaultHeaders: headers, fetchStateHistory: true,
      onThreadId: (id) => shown.threads.push(id), ...options,
    });
    Object.assign(shown, { stream, messages: stream.messages, interrupt: stream.interrupt, loading: stream.isLoading });
    return null;
  };
  shown.page = create(createElement(Page));
  return shown;
};
const ready = (shown, fits) => until(() => shown.stream && !shown.loading && fits());
const say = (content) => ({ messages: [{ type: 'human', content }] });
const last = (shown) => shown.messages.at(-1)?.content;
const out = {};

const wish = page();
await until(() => wish.stream);
wish.stream.submit(say('become a poet'));
await ready(wish, () => wish.interrupt);
out.asks = [wish.messages.map(({ type }) => type), wish.interrupt.value.actionRequests[0].name];
wish.stream.submit(null, { command: { resume: { decisions: [{ type: 'approve' }] } } });
await ready(wish, () => last(wish) === 'I have become a poet.');
out.resumed = [last(wish), wish.interrupt ?? null, wish.messages.length];
wish.stream.submit(say('say it'));
await ready(wish, () => last(wish) === 'Said.');
out.again = [wish.threads.length, wish.messages.length, wish.stream.error ?? null];

const back = page({ threadId: wish.threads[0] });
await ready(back, () => back.messages.length === wish.messages.length);
out.back = [last(back), back.stream.history.length > 3];

const slow = page();
await until(() => slow.stream);
slow.stream.submit(say('slow'));
await until(() => slow.messages?.length > 1 && last(slow).length > 3);
await slow.stream.stop();
const url = `${base}/langgraph/threads/${slow.threads[0]}/runs`;
const status = async () => (await (await fetch(url, { headers })).json())[0]?.status;
out.stopped = [await until(() => !slow.loading), await until(async () => (await status()) === 'interrupted')];
// The client shows the state that it read after its stop.
out.kept = slow.messages.filter(({ type }) => type === 'ai').map(({ content }) => content.startsWith('one'));

// A page is left in the middle of a run, and opened again.
const kept = new Map();
const storage = {
  getItem: (key) => kept.get(key) ?? null,
  setItem: (key, value) => void kept.set(key, value),
  removeItem: (key) => void kept.delete(key),
};
globalThis.window = { sessionStorage: storage };
const left = page({ reconnectOnMount: () => storage });
await until(() => left.stream);
left.stream.submit(say('slow'));
await until(() => left.messages?.length > 1 && last(left).length > 3);
left.page.unmount();
const again = page({ reconnectOnMount: () => storage, threadId: left.threads[0] });
const all = 'one two three four five six seven eight nine ten';
await until(() => again.messages?.length > 1 && last(again).trim() === all);
out.rejoined = [again.loading, again.messages.length];
await again.stream.stop();
out.cancelled = [await until(() => !again.loading), kept.size];
finish(out);
