// The client of LangGraph: a flow as an assistant, with a question and a breakpoint; crons; the store.
import { finish, until } from './common.mjs';
import { all, client, makeShout, of, refused, said } from './langgraph-common.mjs';

const { assistants, threads, runs, crons, store } = client;
const out = {};
await makeShout();

const [shout] = await assistants.search({ graphId: 'shout' });
const task = (await threads.create()).thread_id;
const input = { input: { items: ['a', 'b'] } };
const first = await all(runs.stream(task, 'shout', { ...input, streamMode: ['updates', 'values'] }));
const second = await all(runs.stream(task, shout.assistant_id, { command: { resume: { colour: 'red' } }, streamMode: ['updates', 'values', 'custom'] }));
out.flow = {
  first: first.map(({ event, data }) => (event === 'updates' ? Object.keys(data)[0] : event)),
  asks: first.at(-2).data.__interrupt__[0].value.question,
  second: of(second, 'updates').map((update) => Object.keys(update)[0]),
  values: of(second, 'values').at(-1),
  children: of(second, 'custom').filter(({ type }) => type === 'child_arrived').length,
  state: (await threads.getState(task)).values,
  runs: (await runs.list(task)).map(({ status }) => status),
  status: (await threads.get(task)).status,
  search: (await threads.search({ metadata: { graph_id: 'shout' } })).length,
  once: await refused(() => runs.create(task, 'shout', input)),
};
const paused = (await threads.create()).thread_id;
await runs.wait(paused, 'shout', { ...input, interruptBefore: ['check'] });
const before = (await threads.getState(paused)).next;
const on = await runs.wait(paused, 'shout', { input: null });
out.breakpoint = [before, on.__interrupt__.length];
await runs.cancel(paused, (await runs.list(paused))[0].run_id);

await runs.wait('my-own-thread', 'assistant', { ...said('say it'), ifNotExists: 'create' });
const cron = await crons.create('assistant', { schedule: '0 9 * * mon-fri', timezone: 'Europe/Berlin', ...said('say it') });
const ofThread = await crons.createForThread('my-own-thread', 'assistant', { schedule: '*/5 * * * *', ...said('say it') });
const listed = await until(async () => {
  const found = await crons.search({ limit: 10 });
  return found.length === 2 && found;
});
const changed = await crons.update(cron.cron_id, { enabled: false });
out.crons = [listed.map(({ schedule }) => schedule).sort(), cron.timezone, typeof cron.next_run_date, ofThread.thread_id !== null];
out.crons.push(await until(async () => (await crons.search({ enabled: false })).length), changed.cron_id === cron.cron_id);
for (const { cron_id: id } of listed) await crons.delete(id);
out.noCrons = await until(async () => (await crons.search()).length === 0);

await store.putItem(['users', 'ann'], 'likes', { colour: 'red', n: 1 });
await store.putItem(['users', 'bob'], 'likes', { colour: 'blue' });
out.store = {
  item: (await store.getItem(['users', 'ann'], 'likes')).value,
  none: await store.getItem(['users', 'ann'], 'none'),
  search: (await store.searchItems(['users'])).items.map(({ namespace }) => namespace.join('.')),
  filter: (await store.searchItems(['users'], { filter: { colour: 'blue' } })).items.length,
  namespaces: (await store.listNamespaces({ prefix: ['users'] })).namespaces,
};
await store.deleteItem(['users', 'ann'], 'likes');
out.store.left = (await store.searchItems([])).items.length;
finish(out);
