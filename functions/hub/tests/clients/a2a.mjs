// The client of Agent2Agent: cards, a task with its artifacts, questions and permissions, streams, leaving and coming back, cancelling, refusals.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { ClientFactory } from '@a2a-js/sdk/client';
import { base, finish, until, workspace } from './common.mjs';
import { makeShout } from './langgraph-common.mjs';

const options = { serviceParameters: { 'X-Workspace-Id': workspace } };
const client = await new ClientFactory().createFromUrl(base);
const states = ['UNSPECIFIED', 'SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELED', 'INPUT_REQUIRED', 'REJECTED'];
const part = (content) => (typeof content === 'string' ? { $case: 'text', value: content } : { $case: 'data', value: content });
const message = (content, more) => ({
  tenant: '',
  metadata: undefined,
  configuration: undefined,
  message: {
    messageId: randomUUID(), role: 1, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined,
    parts: [{ content: part(content), metadata: undefined, filename: '', mediaType: '' }],
    ...more,
  },
});
const send = (content, more) => client.sendMessage(message(content, more), options);
const get = (id) => client.getTask({ tenant: '', id, historyLength: undefined }, options);
const state = (task) => states[task.status.state];
const answer = (task) => task.artifacts.find((one) => one.artifactId === 'answer')?.parts.map((one) => one.content.value).join('');
const refusal = async (call) => {
  try {
    await call();
    return 'taken';
  } catch (error) {
    return [error.name, error.envelopeCode];
  }
};
const out = {};

const { capabilities, securitySchemes, skills } = client.agentCard;
out.card = [capabilities.streaming, capabilities.pushNotifications, securitySchemes.bearer.scheme.value.scheme, skills.some((one) => one.id === 'reviewer')];
const inside = await new ClientFactory().createFromUrl(`${base}/a2a/${workspace}/`);
out.inside = [inside.agentCard.supportedInterfaces[0].url === `${base}/a2a/${workspace}`, inside.agentCard.skills.length];
out.extended = (await client.getAgentCard(options)).skills.some((one) => one.id === 'assistant');

const whole = await send('whole');
const file = whole.artifacts.find((one) => one.name === '/projects/whole/a.md');
const content = await fetch(file.parts[0].content.value);
out.whole = { state: state(whole), answer: answer(whole), file: [file.parts[0].filename, content.status], history: whole.history.map((one) => one.role) };
const again = await send('say it', { contextId: whole.contextId });
out.again = [answer(again), again.contextId === whole.contextId, again.id === whole.id, state(await get(whole.id))];

const updates = [];
for await (const event of client.sendMessageStream(message('stream', { metadata: { skill: 'reviewer' } }), options)) updates.push(event.payload);
const kinds = updates.map((one) => one.$case);
const text = updates.filter((one) => one.$case === 'artifactUpdate' && one.value.artifact.artifactId === 'answer');
out.stream = {
  first: kinds[0], last: state(updates.at(-1).value),
  text: text.map((one) => one.value.artifact.parts[0].content.value).join(''),
  calls: updates.map((one) => one.value.metadata?.call?.tool).filter(Boolean),
};

const wish = await send('become a poet');
out.asks = [state(wish), wish.status.message.parts[1].content.value.tool];
const watching = (async () => {
  const seen = [];
  for await (const event of client.resubscribeTask({ tenant: '', id: wish.id }, options)) {
    seen.push(event.payload);
    if (seen.length === 1) out.watched = event.payload.$case;
  }
  return seen.at(-1).value.status.state;
})();
await until(() => out.watched);
const declined = await send('declined: no poets', { taskId: wish.id });
out.declined = [state(declined), answer(declined), declined.id === wish.id];
out.watchedToTheEnd = states[await watching];

const question = await send('ask me');
const answered = await send({ colour: 'blue' }, { taskId: question.id, contextId: question.contextId });
out.answered = [state(question), question.status.message.parts[0].content.value, answer(answered)];

// The client goes in the middle of a sentence, and comes back by the id of the task.
let left;
for await (const { payload } of client.sendMessageStream(message('slow'), options)) {
  if (payload.$case === 'task') left = payload.value.id;
  if (payload.$case === 'artifactUpdate') break;
}
let words = '';
for await (const { payload } of client.resubscribeTask({ tenant: '', id: left }, options)) {
  if (payload.$case === 'task') words = answer(payload.value) ?? '';
  if (payload.$case === 'artifactUpdate') words += payload.value.artifact.parts[0].content.value;
  if (words.trim() === 'one two three four five six seven eight nine ten') break;
}
const canceled = await client.cancelTask({ tenant: '', id: left, metadata: undefined }, options);
out.canceled = [words.trim().split(' ').length, state(canceled)];

const at = message('say it');
at.configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: 0, returnImmediately: true };
const early = await client.sendMessage(at, options);
out.polled = [early.history.length, await until(async () => { const now = await get(early.id); return state(now) === 'COMPLETED' && answer(now); })];

// Notifications come to a receiver: from the first event of a task on, and to a configuration that is made later.
const notices = [];
const receiver = createServer(async (request, answer) => {
  let body = '';
  for await (const piece of request) body += piece;
  const { taskId, status } = JSON.parse(body).statusUpdate;
  notices.push([taskId, status.state, request.headers['x-a2a-notification-token'], Boolean(request.headers['webhook-signature'])]);
  answer.writeHead(204).end();
});
await new Promise((done) => receiver.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${receiver.address().port}/`;
const config = (id, taskId) => ({ tenant: '', id, taskId, url, token: `token of ${id}`, authentication: undefined });
const pushed = message('ask me');
pushed.configuration = { ...at.configuration, returnImmediately: false, taskPushNotificationConfig: config('first', '') };
const waiting = await client.sendMessage(pushed, options);
const of = (id) => ({ tenant: '', taskId: waiting.id, id });
const second = await client.createTaskPushNotificationConfig(config('second', waiting.id), options);
const listed = await client.listTaskPushNotificationConfig({ tenant: '', taskId: waiting.id, pageSize: 0, pageToken: '' }, options);
await send({ colour: 'blue' }, { taskId: waiting.id });
const seen = (token) => notices.filter((one) => one[0] === waiting.id && one[2] === token).map((one) => [one[1], one[3]]);
await until(() => seen('token of first').length === 2 && seen('token of second').length === 1);
await client.deleteTaskPushNotificationConfig(of('second'), options);
// A message that the task does not take changes nothing about its notifications.
const late = message('once more', { taskId: waiting.id });
late.configuration = { ...pushed.configuration, taskPushNotificationConfig: { ...config('first', ''), token: 'of a late message' } };
const tooLate = await refusal(() => client.sendMessage(late, options));
out.pushed = {
  tooLate,
  first: seen('token of first'), second: seen('token of second'), made: [second.id, second.url === url],
  listed: listed.configs.map((one) => one.id).sort(), read: (await client.getTaskPushNotificationConfig(of('first'), options)).token,
  gone: await refusal(() => client.getTaskPushNotificationConfig(of('second'), options)),
};

// Tasks are listed by context and by state, page by page.
const list = (more) => client.listTasks({ tenant: '', contextId: '', status: 0, pageToken: '', ...more }, options);
const ofContext = await list({ contextId: whole.contextId, includeArtifacts: true });
const all = [];
for (let pageToken = ''; ;) {
  const page = await list({ pageSize: 2, pageToken });
  all.push(...page.tasks.map((one) => one.id));
  if (page.nextPageToken === '') break;
  pageToken = page.nextPageToken;
}
out.listed = {
  context: ofContext.tasks.map((one) => [one.id === whole.id, answer(one)]),
  canceled: (await list({ status: 5 })).tasks.map((one) => one.id === left), all: [all.length > 6, new Set(all).size === all.length, all.includes(whole.id)],
};

// A flow is a skill beside the personas: its task asks, is answered, watched and canceled as any other.
await makeShout();
const withFlow = await new ClientFactory().createFromUrl(`${base}/a2a/${workspace}/`);
const skill = withFlow.agentCard.skills.find((one) => one.id === 'shout');
const items = { items: ['a', 'b'] };
const shout = await send(items, { metadata: { skill: 'shout' } });
const watcher = (async () => {
  const seen = [];
  for await (const { payload } of client.resubscribeTask({ tenant: '', id: shout.id }, options)) {
    seen.push(payload);
    if (seen.length === 1) out.flowWatched = payload.$case;
  }
  return states[seen.at(-1).value.status.state];
})();
await until(() => out.flowWatched);
const shouted = await send({ colour: 'red' }, { taskId: shout.id });
const streamedFlow = [];
for await (const { payload } of client.sendMessageStream(message(items, { metadata: { skill: 'shout' } }), options)) streamedFlow.push(payload);
const stopped = await client.cancelTask({ tenant: '', id: streamedFlow[0].value.id, metadata: undefined }, options);
// Its notifications are those of one task, of which others of its flow tell nothing.
const noisy = message(items, { metadata: { skill: 'shout' } });
noisy.configuration = { ...pushed.configuration, taskPushNotificationConfig: config('flow', '') };
const loud = await client.sendMessage(noisy, options);
await client.createTaskPushNotificationConfig(config('later', loud.id), options);
const ofLoud = await client.listTaskPushNotificationConfig({ tenant: '', taskId: loud.id, pageSize: 0, pageToken: '' }, options);
await send({ colour: 'red' }, { taskId: loud.id });
const heard = (token) => notices.filter((one) => one[2] === token).map((one) => [one[0] === loud.id, one[1]]);
await until(() => heard('token of flow').length === 2 && heard('token of later').length === 1);
receiver.close();
out.flow = {
  tags: skill.tags, asks: [state(shout), shout.status.message.parts[0].content.value], answer: JSON.parse(answer(shouted)), same: shouted.id === shout.id,
  watched: await watcher, read: state(await get(shout.id)), streamed: [streamedFlow[0].$case, states[streamedFlow.at(-1).value.status.state]],
  stopped: state(stopped), listed: (await list({ contextId: shout.contextId })).tasks.map((one) => one.id === shout.id),
  again: await refusal(() => send('more', { contextId: shout.contextId })),
  pushed: [heard('token of flow'), heard('token of later'), ofLoud.configs.map((one) => one.id).sort()],
};

const guarded = message('x');
guarded.configuration = { ...at.configuration, taskPushNotificationConfig: { ...config('x', ''), authentication: { scheme: 'Bearer', credentials: 'c' } } };
const picture = message('x');
picture.message.parts[0].content = { $case: 'url', value: 'https://a.example/x.png' };
out.refusals = [
  await refusal(() => client.sendMessage(guarded, options)),
  await refusal(() => client.sendMessage(picture, options)),
  await refusal(() => send('x', { taskId: whole.id })),
  await refusal(() => send('x', { contextId: 'mine' })),
  await refusal(() => send('x', { metadata: { skill: 'nobody' } })),
  await refusal(() => get(`${'0'.repeat(32)}-${'0'.repeat(32)}`)),
  await refusal(() => client.cancelTask({ tenant: '', id: whole.id, metadata: undefined }, options)),
  await refusal(() => list({ pageToken: 'mine' })),
];
finish(out);
