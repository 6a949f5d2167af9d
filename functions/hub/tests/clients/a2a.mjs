// The client of Agent2Agent: cards, a task with its artifacts, questions and permissions, streams, leaving and coming back, cancelling, refusals.
import { randomUUID } from 'node:crypto';
import { ClientFactory } from '@a2a-js/sdk/client';
import { base, finish, until, workspace } from './common.mjs';

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

const pushed = message('x');
pushed.configuration = { ...at.configuration, taskPushNotificationConfig: { tenant: '', id: '', taskId: '', url: 'https://a.example', token: '' } };
const picture = message('x');
picture.message.parts[0].content = { $case: 'url', value: 'https://a.example/x.png' };
out.refusals = [
  await refusal(() => client.sendMessage(pushed, options)),
  await refusal(() => client.sendMessage(picture, options)),
  await refusal(() => send('x', { taskId: whole.id })),
  await refusal(() => send('x', { contextId: 'mine' })),
  await refusal(() => send('x', { metadata: { skill: 'nobody' } })),
  await refusal(() => get(`${'0'.repeat(32)}-${'0'.repeat(32)}`)),
  await refusal(() => client.cancelTask({ tenant: '', id: whole.id, metadata: undefined }, options)),
  await refusal(() => client.deleteTaskPushNotificationConfig({ tenant: '', taskId: whole.id, id: 'x' }, options)),
  await refusal(() => client.listTasks({ tenant: '', contextId: '', status: 0, pageToken: '' }, options)),
];
finish(out);
