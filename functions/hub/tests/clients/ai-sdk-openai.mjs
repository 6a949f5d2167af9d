// The AI SDK by its provider for OpenAI: objects by responses and completions, whole and streamed, answers that do not fit, and a conversation that goes on.
import { createOpenAI } from '@ai-sdk/openai';
import { Output, generateObject, generateText, jsonSchema, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';
import { base, finish, workspace } from './common.mjs';

const openai = createOpenAI({ apiKey: 'any', baseURL: `${base}/openai/v1`, headers: { 'X-Workspace-Id': workspace } });
const schema = z.object({ name: z.string(), legs: z.int() });
const about = { schema, schemaName: 'bee', schemaDescription: 'An insect.', maxRetries: 0 };
const output = Output.object({ schema });
const asked = { responses: openai('assistant'), completions: openai.chat('assistant') };
// A stream tells of its error beside the object, and the object fails of it.
const streamed = async (ask, read) => {
  let seen;
  const stream = ask({ onError: ({ error }) => (seen = error) });
  for await (const _ of stream.fullStream);
  if (seen) throw seen;
  return read(stream);
};
const ways = (model, prompt) => [
  async () => (await generateObject({ ...about, model, prompt })).object,
  () => streamed((more) => streamObject({ ...about, ...more, model, prompt }), (stream) => stream.object),
  async () => (await generateText({ model, prompt, output, maxRetries: 0 })).output,
  () => streamed((more) => streamText({ ...more, model, prompt, output, maxRetries: 0 }), (stream) => stream.output),
];
const out = { faults: {} };
for (const [name, model] of Object.entries(asked)) {
  const scenes = ['describe the bee', 'look at the bee'].map((scene) => Promise.all(ways(model, scene).map((way) => way())));
  out[name] = (await Promise.all(scenes)).flat().map((bee) => bee.legs);
  const fault = (error) => [error.name, error.message.includes('/legs')];
  out.faults[name] = await Promise.all(ways(model, 'guess the bee').map((way) => way().catch(fault)));
}
// Unless it is told otherwise, it names the items of earlier answers by their ids.
const model = openai('assistant');
const turn = async (before, content, more = {}) => {
  const messages = [...before, { role: 'user', content }];
  const answer = await generateText({ model, messages, maxRetries: 0, ...more });
  return { ...answer, text: answer.text, id: answer.response.id, messages: [...messages, ...answer.response.messages] };
};
const system = 'Be brief.';
const first = await turn([], 'say it', { system });
const second = await turn(first.messages, 'say more', { system });
const place = jsonSchema({ type: 'object', properties: { place: { type: 'string' } }, required: ['place'], additionalProperties: false });
const places = [];
const weather = tool({ description: 'Tells the weather.', inputSchema: place, execute: ({ place }) => (places.push(place), 'warm') });
const asks = await turn([], 'weather', { tools: { weather }, stopWhen: stepCountIs(4) });
const chat = (id) => id.slice(0, 'resp_'.length + 32);
out.turns = [first.text, second.text, chat(first.id) === chat(second.id)];
out.functions = [places, asks.text];
finish(out);
