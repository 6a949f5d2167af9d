// The client of OpenAI for JavaScript: models, completions, responses, questions, permissions, formats, errors.
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { base, dot, finish, kept, until, workspace } from './common.mjs';

const client = new OpenAI({
  apiKey: 'any',
  baseURL: `${base}/openai/v1`,
  defaultHeaders: { 'X-Workspace-Id': workspace },
  maxRetries: 0,
});
const model = 'assistant';
const { completions } = client.chat;
const user = (content) => ({ role: 'user', content });
// The client computes `output_text` of answers that are not streamed alone.
const text = (response) => response.output.flatMap((item) => (item.type === 'message' ? item.content : [])).map((part) => part.text).join('');
const out = {};

out.models = (await client.models.list()).data.map((one) => one.id);
out.model = (await client.models.retrieve('reviewer')).id;

const usual = { temperature: 0.7, top_p: 1, max_tokens: 4096 };
const said = await completions.create({ model, ...usual, messages: [{ role: 'system', content: 'Be brief.' }, user('say it')] });
out.completion = [said.choices[0].message.content, said.choices[0].finish_reason, said.usage.total_tokens > 0];

const look = user([{ type: 'text', text: 'say it' }, { type: 'image_url', image_url: { url: dot } }]);
const seen = await completions.create({ model, messages: [look] });
const again = await completions.create({ model, messages: [look, seen.choices[0].message, user('say it')] });
const page = { type: 'input_file', filename: 'page of open.txt', file_data: 'data:text/plain;base64,aGk=' };
const read = await client.responses.create({ model, input: [{ role: 'user', content: [{ type: 'input_text', text: 'say it' }, page] }] });
out.files = [seen, again].map((one) => one.choices[0].message.content).concat(text(read), await kept('file.png'), await kept('page of open.txt'));

out.chunks = { text: '', reasoning: '', pieces: 0, reason: null, usage: false };
const chunks = { model, stream: true, stream_options: { include_usage: true }, messages: [user('chunks')] };
for await (const { choices, usage } of await completions.create(chunks)) {
  const [choice] = choices;
  if (usage) out.chunks.usage = usage.total_tokens > 0;
  if (!choice) continue;
  out.chunks.text += choice.delta.content ?? '';
  out.chunks.reasoning += choice.delta.reasoning_content ?? '';
  out.chunks.pieces += choice.delta.content ? 1 : 0;
  out.chunks.reason ??= choice.finish_reason;
}

const handed = await completions.create({ model, messages: [user('ask me')] });
const [call] = handed.choices[0].message.tool_calls;
const answer = { role: 'tool', tool_call_id: call.id, content: '{"colour": "blue"}' };
const answered = await completions.create({ model, messages: [user('ask me'), handed.choices[0].message, answer] });
out.handed = [handed.choices[0].finish_reason, call.function.name, answered.choices[0].message.content];

const first = await client.responses.create({ model, input: 'say it' });
const second = await client.responses.create({ model, input: 'say more', previous_response_id: first.id, temperature: 0.4 });
out.responses = [first.output_text, second.output_text, second.previous_response_id === first.id, first.status];
out.sameChat = first.conversation.id === second.conversation.id;
const third = await client.responses.create({ model, input: 'say again', conversation: first.conversation.id });
out.conversation = third.previous_response_id === second.id;

const events = [];
const stream = client.responses.stream({ model, input: 'events' });
for await (const event of stream) events.push(event);
const final = await stream.finalResponse();
out.stream = {
  text: text(final),
  items: final.output.map((item) => (item.type === 'mcp_call' ? `${item.name} ${item.status}` : item.type)),
  tokens: final.usage.total_tokens > 0,
};
const half = Math.floor(events.length / 2);
const rest = [];
const options = { stream: true, starting_after: events[half].sequence_number };
for await (const event of await client.responses.retrieve(final.id, options)) rest.push(event);
out.resumed = rest.at(-1).type === 'response.completed' && rest[0].sequence_number > events[half].sequence_number;
out.retrieved = (await client.responses.retrieve(final.id)).output_text === text(final);

const polled = await client.responses.create({ model, input: 'say it', background: true });
const done = await until(async () => {
  const now = await client.responses.retrieve(polled.id);
  return now.status === 'completed' && now;
});
out.background = [polled.status, done.output_text];

const slow = await client.responses.create({ model, input: 'slow', background: true });
await until(async () => (await client.responses.retrieve(slow.id)).status === 'in_progress');
await client.responses.cancel(slow.id);
out.cancelled = await until(async () => {
  const { status } = await client.responses.retrieve(slow.id);
  return status === 'cancelled' && status;
});

const question = await client.responses.create({ model, input: 'ask me' });
const asked = question.output.find((item) => item.type === 'function_call');
const told = await client.responses.create({
  model,
  previous_response_id: question.id,
  input: [{ type: 'function_call_output', call_id: asked.call_id, output: 'red' }],
});
out.question = [JSON.parse(asked.arguments).questions[0].name, told.output_text];

const wish = await client.responses.create({ model, input: 'become a poet' });
const request = wish.output.find((item) => item.type === 'mcp_approval_request');
const approval = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true };
const allowed = await client.responses.create({ model, previous_response_id: wish.id, input: [approval] });
out.permission = [request.name, allowed.output_text];

// Functions of the caller: the client's own loop runs them, and so does a program of responses.
const weather = { name: 'weather', description: 'Tells the weather.', parameters: { type: 'object', properties: { place: { type: 'string' } } } };
const run = (text) => (JSON.parse(text).place === 'Rome' ? 'warm' : 'cold');
const runner = completions.runTools({ model, messages: [user('weather')], tools: [{ type: 'function', function: { ...weather, function: run } }] });
out.runTools = [await runner.finalContent(), runner.messages.filter((message) => message.role === 'tool').map((message) => message.content)];
const functions = [{ type: 'function', strict: false, ...weather }];
let response = await client.responses.create({ model, input: 'weather', tools: functions });
const calls = [];
for (let item; (item = response.output.find((one) => one.type === 'function_call')); ) {
  calls.push([item.name, JSON.parse(item.arguments).place]);
  const result = { type: 'function_call_output', call_id: item.call_id, output: run(item.arguments) };
  response = await client.responses.create({ model, previous_response_id: response.id, input: [result], tools: functions });
}
out.functions = [calls, response.output_text, response.output.some((item) => item.type === 'mcp_call')];
const next = await client.responses.create({ model, previous_response_id: response.id, input: 'say it', tools: functions });
out.functionsLater = next.output_text;

// An answer in a format is parsed. One of another form is an error, also in streams.
const bee = z.object({ name: z.string(), legs: z.int() });
const completed = (scene) => ({ model, messages: [user(scene)], response_format: zodResponseFormat(bee, 'bee') });
const responded = (scene) => ({ model, input: scene, text: { format: zodTextFormat(bee, 'bee') } });
out.formats = [];
for (const scene of ['describe the bee', 'look at the bee']) {
  const whole = await completions.parse(completed(scene));
  const streamed = await completions.stream(completed(scene)).finalChatCompletion();
  const response = await client.responses.parse(responded(scene));
  const final = await client.responses.stream(responded(scene)).finalResponse();
  const bees = [whole, streamed].map((one) => one.choices[0].message.parsed).concat(response.output_parsed, final.output_parsed);
  out.formats.push([bees.map((one) => one.legs), response.text.format.name]);
}
const object = { type: 'json_object' };
const any = [
  (await completions.create({ ...completed('guess the bee'), response_format: object })).choices[0].message.content,
  (await client.responses.create({ ...responded('look at the bee'), text: { format: object } })).output_text,
];
out.objects = any.map((one) => JSON.parse(one).legs);
const fault = ({ code, message }) => [code, message.includes('/legs')];
const guessed = await client.responses.parse(responded('guess the bee'));
const parts = [];
for await (const event of client.responses.stream(responded('guess the bee'))) parts.push(event);
out.misfits = [
  await completions.parse(completed('guess the bee')).catch(fault),
  await completions.stream(completed('guess the bee')).finalChatCompletion().catch(fault),
  [guessed.status, ...fault(guessed.error)],
  [parts.at(-1).type, ...fault(parts.at(-1).response.error)],
];

const refused = async (wrong) => {
  try {
    await wrong();
    return 'taken';
  } catch (error) {
    return [error.constructor.name, error.code, error.param, error.type];
  }
};
const tools = [{ type: 'web_search' }];
out.refusals = [
  await refused(() => client.responses.create({ model, input: 'x', tools })),
  await refused(() => client.responses.create({ model, input: 'x', previous_response_id: next.id, tools: [{ ...functions[0], name: 'other' }] })),
  await refused(() => completions.create({ model, messages: [user('x')], presence_penalty: 0.5 })),
  await refused(() => client.responses.create({ model: 'nobody', input: 'x' })),
  await refused(() => client.responses.create({ model, input: 'x', previous_response_id: first.id })),
];
finish(out);
