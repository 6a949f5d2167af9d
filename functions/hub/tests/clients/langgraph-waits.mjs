// The client of LangGraph: interrupts, runs beside each other, cancellations, clients that go, copies, refusals.
import { finish, until } from './common.mjs';
import { all, client, of, refused, said, texts } from './langgraph-common.mjs';

const { threads, runs, store } = client;
const out = {};

const wish = (await threads.create()).thread_id;
const asked = of(await all(runs.stream(wish, 'assistant', { ...said('become a poet'), streamMode: ['values', 'updates'] })), 'values').at(-1);
const [permission] = asked.__interrupt__;
const waiting = await threads.get(wish);
const allowed = { command: { resume: { decisions: [{ type: 'approve' }] } } };
const poet = await all(runs.stream(wish, 'assistant', { ...allowed, streamMode: 'values' }));
out.permission = {
  asks: [permission.value.action_requests[0].name, waiting.status, Object.values(waiting.interrupts)[0][0].id === permission.id],
  next: (await threads.getHistory(wish, { limit: 9 })).map(({ next, tasks }) => [next[0], tasks[0]?.interrupts.length ?? 0]),
  after: texts(of(poet, 'values').at(-1)),
  runs: (await runs.list(wish)).map(({ status }) => status),
};
const no = (await threads.create()).thread_id;
await runs.wait(no, 'assistant', said('become a poet'));
out.declined = texts(await runs.wait(no, 'assistant', { command: { resume: { decisions: [{ type: 'reject', message: 'no' }] } } })).at(-1);
const question = (await threads.create()).thread_id;
const questions = await runs.wait(question, 'assistant', said('ask me'));
out.question = [questions.__interrupt__[0].value.question];
out.question.push(texts(await runs.wait(question, 'assistant', { command: { resume: 'red' } })).at(-1));
out.nothing = await refused(() => runs.wait(question, 'assistant', { command: { resume: 'red' } }));

const running = (thread) => until(async () => (await runs.list(thread)).find(({ status }) => status === 'running'));
// A run that has said its first word: one that is stopped before has no message of its own.
const speaking = async (thread, run) => {
  for await (const { event } of runs.joinStream(thread, run.run_id, { streamMode: 'messages' })) if (event.startsWith('messages')) return;
};
const slow = (await threads.create()).thread_id;
const long = await runs.create(slow, 'assistant', said('slow'));
await speaking(slow, long);
out.rejected = await refused(() => runs.create(slow, 'assistant', { ...said('say it'), multitaskStrategy: 'reject' }));
out.interrupting = texts(await runs.wait(slow, 'assistant', { ...said('say it'), multitaskStrategy: 'interrupt' })).at(-1);
out.interrupted = (await runs.get(slow, long.run_id)).status;
const stopped = await runs.create(slow, 'assistant', said('slow'));
const behind = await runs.create(slow, 'assistant', { ...said('say it'), multitaskStrategy: 'enqueue' });
await speaking(slow, stopped);
await runs.cancel(slow, stopped.run_id, true);
out.cancelled = [(await runs.get(slow, stopped.run_id)).status, texts(await runs.join(slow, behind.run_id)).at(-1)];
const many = (await threads.create()).thread_id;
const both = [await runs.create(many, 'assistant', said('slow')), await runs.create(many, 'assistant', said('slow'))];
await speaking(many, both[0]);
await runs.cancelMany({ threadId: many, runIds: both.map(({ run_id: id }) => id) });
const ended = async (id) => {
  const { status } = await runs.get(many, id);
  return status !== 'pending' && status !== 'running' && status;
};
out.cancelledMany = [await until(() => ended(both[0].run_id)), await until(() => ended(both[1].run_id))];
const back = (await threads.create()).thread_id;
const taken = await runs.create(back, 'assistant', said('slow'));
await running(back);
out.rolledBack = [texts(await runs.wait(back, 'assistant', { ...said('say it'), multitaskStrategy: 'rollback' })).at(-1)];
out.rolledBack.push((await runs.get(back, taken.run_id)).status);

const left = (await threads.create()).thread_id;
const abort = new AbortController();
const leaving = all(runs.stream(left, 'assistant', { ...said('slow'), onDisconnect: 'cancel', signal: abort.signal })).catch(() => []);
await running(left);
abort.abort();
await leaving;
out.left = await until(async () => (await runs.list(left)).map(({ status }) => status).find((status) => status !== 'running'));

const copy = await threads.copy(slow);
const contents = ({ values }) => values.messages.map(({ content }) => content);
const source = contents(await threads.getState(slow));
out.copied = [source.length, JSON.stringify(contents(copy)) === JSON.stringify(source), copy.thread_id !== slow];
await threads.delete(copy.thread_id);
out.deleted = await refused(() => threads.get(copy.thread_id));

out.refusals = [
  await refused(() => all(runs.stream(wish, 'assistant', { ...said('x'), streamMode: 'events' }))),
  await refused(() => runs.create(wish, 'assistant', { ...said('x'), multitaskStrategy: 'replace' })),
  await refused(() => runs.create(wish, 'assistant', { ...said('x'), checkpoint: { checkpoint_id: '1' } })),
  await refused(() => runs.create(wish, 'assistant', { command: { update: { messages: [] } } })),
  await refused(() => runs.create(wish, 'nobody', said('x'))),
  await refused(() => runs.create(wish, 'reviewer', said('x'))),
  await refused(() => runs.create('none', 'assistant', said('x'))),
  await refused(() => threads.updateState(wish, { values: { messages: [] } })),
  await refused(() => threads.create({ metadata: { attempt: 7 } })),
  await refused(() => store.searchItems(['users'], { query: 'colours' })),
];
finish(out);
