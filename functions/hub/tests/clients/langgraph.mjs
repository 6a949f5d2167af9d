// The client of LangGraph: assistants, threads with states, runs in all modes, joins.
import { finish } from './common.mjs';
import { all, client, makeShout, of, refused, said, texts } from './langgraph-common.mjs';

const { assistants, crons, threads, runs } = client;
const out = {};
await makeShout();

const known = await assistants.search({ limit: 100 });
const [shout] = await assistants.search({ graphId: 'shout' });
out.assistants = {
  personas: ['assistant', 'reviewer'].every((name) => known.some(({ graph_id: id }) => id === name)),
  byId: (await assistants.get(shout.assistant_id)).graph_id,
  nodes: (await assistants.getGraph('shout')).nodes.map(({ id }) => id),
  persona: (await assistants.getGraph('assistant')).nodes.length,
  schemas: (await assistants.getSchemas('assistant')).input_schema.required,
};

const whole = await threads.create({ graphId: 'assistant' });
out.empty = [whole.status, (await threads.getState(whole.thread_id)).checkpoint, (await threads.get(whole.thread_id)).values];
let created;
const modes = ['values', 'messages-tuple', 'updates', 'custom', 'tools', 'messages'];
const events = await all(
  runs.stream(whole.thread_id, 'assistant', { ...said('modes'), streamMode: modes, streamSubgraphs: true, onRunCreated: (run) => (created = run) }),
);
const [{ run_id: runId, thread_id: threadId }] = of(events, 'metadata');
const words = {};
for (const [message] of of(events, 'messages')) words[message.id] = (words[message.id] ?? '') + message.content;
out.modes = {
  created: created.run_id === runId && created.thread_id === threadId && threadId === whole.thread_id,
  last: events.at(-1).data.status,
  types: of(events, 'values').at(-1).messages.map(({ type }) => type),
  texts: texts(of(events, 'values').at(-1)),
  pieces: Object.values(words).filter((text) => texts(of(events, 'values').at(-1)).includes(text)).length,
  reasoning: of(events, 'messages').map(([message]) => message.additional_kwargs.reasoning_content ?? '').join(''),
  updates: of(events, 'updates').map((update) => Object.keys(update)[0]),
  custom: [...new Set(of(events, 'custom').map(({ type }) => type))].sort(),
  tools: of(events, 'tools').map(({ event, name }) => `${event} ${name}`),
  complete: of(events, 'messages/complete').length,
};

const state = await threads.getState(whole.thread_id);
const history = await threads.getHistory(whole.thread_id, { limit: 50 });
out.state = {
  same: JSON.stringify(state.values) === JSON.stringify(of(events, 'values').at(-1)),
  next: state.next,
  history: history.map(({ values }) => values.messages.length),
  linked: history.every((one, at) => one.parent_checkpoint?.checkpoint_id === history[at + 1]?.checkpoint.checkpoint_id),
  at: (await threads.getState(whole.thread_id, history[1].checkpoint)).values?.messages?.length,
  byId: (await threads.getState(whole.thread_id, history[1].checkpoint.checkpoint_id)).values.messages.length,
  before: (await threads.getHistory(whole.thread_id, { limit: 1, before: history[1] }))[0].values.messages.length,
};
const found = await threads.search({ metadata: { graph_id: 'assistant' }, limit: 5 });
out.search = [found.some(({ thread_id: id }) => id === whole.thread_id), (await threads.search({ ids: [whole.thread_id] })).length];

const half = events[Math.floor(events.length / 2)];
const rest = await all(runs.joinStream(whole.thread_id, runId, { lastEventId: half.id, streamMode: modes }));
out.joined = [rest.length < events.length, JSON.stringify(rest.at(-1)) === JSON.stringify(events.at(-1))];
out.replayed = (await all(runs.joinStream(whole.thread_id, runId, { lastEventId: '-1', streamMode: 'updates' }))).map(({ event }) => event);

const mine = await threads.create({ threadId: 'my-own-thread' });
out.own = [mine.thread_id, await refused(() => threads.create({ threadId: 'my-own-thread' }))];
out.own.push((await threads.create({ threadId: 'my-own-thread', ifExists: 'do_nothing' })).thread_id);
out.waited = texts(await runs.wait('my-own-thread', 'assistant', said('say it')));
out.again = texts(await runs.wait('my-own-thread', 'assistant', said('say more')));
out.stateless = texts(await runs.wait(null, 'reviewer', said('say it')));
const background = await runs.create('my-own-thread', 'assistant', said('say again'));
const seen = await runs.get('my-own-thread', background.run_id);
const joined = texts(await runs.join('my-own-thread', background.run_id)).length;
const ended = await runs.get('my-own-thread', background.run_id);
out.background = [['pending', 'running', 'success'].includes(seen.status), joined, ended.status];
out.listed = (await runs.list('my-own-thread')).map(({ status }) => status);

// A page that watches a thread sees its runs, one after the other.
const watched = (await threads.create({ graphId: 'assistant' })).thread_id;
const ends = (async () => {
  const seen = [];
  for await (const { event, data } of threads.joinStream(watched, { lastEventId: '-1', streamMode: 'lifecycle' })) {
    seen.push(event === 'end' ? data.status : event);
    if (seen.length === 4) return seen;
  }
})();
await runs.wait(watched, 'assistant', said('say it'));
await runs.wait(watched, 'assistant', { ...said('say more'), config: { recursion_limit: 25 } });
out.watched = await ends;

const batch = await runs.createBatch(['assistant', 'reviewer'].map((assistantId) => ({ assistantId, ...said('say it') })));
out.batch = [];
for (const run of batch) out.batch.push(texts(await runs.join(run.thread_id, run.run_id)).at(-1));
out.counted = [await assistants.count({ graphId: 'shout' }), await crons.count(), await assistants.getSubgraphs('shout')];
finish(out);
