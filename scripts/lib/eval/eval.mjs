// Runs the messages and stories of the planner at a hub, through its door alone, and prints what they add up to. scripts/eval has the options.
import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout} from 'node:timers/promises';
import {parseArgs} from 'node:util';
import {Client, watchChat} from '../../../clients/typescript/dist/index.js';
import {startHub} from '../../../clients/typescript/test/hub.js';
import {chosen, faults, report} from './score.mjs';
import {STORIES} from './stories.mjs';

const number = (name, text) => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} is to be a number from 0, not ${JSON.stringify(text)}`);
  return value;
};
function options() {
  const names = ['model', 'url', 'messages', 'story', 'at-once', 'json'];
  const {values} = parseArgs({options: Object.fromEntries(names.map(name => [name, {type: 'string'}]))});
  if (values.model && values.url) throw new Error('--model is for a hub of its own; a hub at --url plans with the model of its configuration');
  const stories = STORIES.filter(({name}) => name.includes(values.story ?? ''));
  if (values.story && stories.length === 0) throw new Error(`no story has ${JSON.stringify(values.story)} in its name`);
  return {...values, stories, count: number('messages', values.messages ?? '200'), atOnce: Math.max(1, number('at-once', values['at-once'] ?? '4'))};
}
let given;
try {
  given = options();
} catch (error) {
  console.error(`${error.message}\nscripts/eval --help lists the options.`);
  process.exit(2);
}
const {stories, count, atOnce} = given;

/** One answer of the scripted model. */
const step = ({calls, text}) => ({...(calls ? {calls} : {}), ...(text ? {text} : {})});
const exactly = text => `^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`;

/** The script that plays the stories. JSON is YAML. All messages that no rule decides are taken for `tool`. */
function script() {
  const rules = [];
  for (const {turns, executors = {}} of STORIES) {
    for (const {say, strategy, plays} of turns) {
      const analysis = JSON.stringify({strategy: strategy.at(-1), reasoning: 'as the story says', estimated_operations: 2});
      rules.push({when: {system: '^You are the analyst of a planner chat', user: exactly(say)}, steps: [{text: analysis}]});
      rules.push({when: {system: '^You are the planner', user: exactly(say)}, steps: plays.map(step)});
    }
    for (const [task, plays] of Object.entries(executors)) rules.push({when: {system: '^You are an executor', user: exactly(task)}, steps: plays.map(step)});
  }
  rules.push({when: {system: '^You are the analyst of a planner chat'}, steps: [{text: '{"strategy": "tool", "reasoning": "the default", "estimated_operations": 1}'}]});
  rules.push({steps: [{text: 'I am a script.'}]});
  return JSON.stringify({rules});
}

/** Calls `work` for each item, some at once, and gives the results in the order of the items. */
async function each(items, name, work) {
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      results[at] = await work(items[at]);
      if (process.stderr.isTTY) process.stderr.write(`\r${name}: ${results.filter(Boolean).length} of ${items.length} `);
    }
  };
  await Promise.all(Array.from({length: Math.min(atOnce, items.length)}, worker));
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  return results;
}

class Place {
  constructor(api, workspace) {
    Object.assign(this, {api, workspace, path: {workspace_id: workspace}});
  }

  /** Sends a message to the planner, and gives its frames with their numbers as they come. */
  async *say(body) {
    const headers = {'content-type': 'application/json', accept: 'text/event-stream'};
    const send = () => this.api.send(`/api/agent/stream?workspace_id=${this.workspace}`, {method: 'POST', headers, body: JSON.stringify(body)});
    let answer = await send();
    // A hub that runs has a pace of its own.
    for (; answer.status === 429; answer = await send()) await setTimeout(1000 * Number(answer.headers.get('retry-after') ?? 5));
    if (!answer.ok) throw new Error(`the planner answered ${answer.status}: ${(await answer.text()).slice(0, 400)}`);
    let [rest, seq] = ['', 0];
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith('id:')) seq = Number(line.slice(3));
        if (line.startsWith('data:')) yield {seq, ...JSON.parse(line.slice(5))};
      }
    }
  }

  /** The analysis of one message, the tokens and money that it took, and the time until it was there. The turn is then stopped. */
  async analysed({label, text}) {
    const began = performance.now();
    let [session, analysis] = [];
    for await (const frame of this.say({message: text, context_type: 'global'})) {
      session ??= frame.session?.id;
      if (frame.type !== 'analysis') continue;
      analysis = {...frame.analysis, seq: frame.seq};
      break;
    }
    if (!analysis) throw new Error(`there was no analysis of ${JSON.stringify(text)}`);
    const ms = performance.now() - began;
    await this.api.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop', {path: {...this.path, chat_id: session}}).catch(() => undefined);
    // Usage that comes before the analysis is that of its own call. A rule has none.
    let [tokens, cost] = [0, 0];
    for await (const {id, event, data} of watchChat(this.api, {workspace: this.workspace, chat: session}, {after: 0})) {
      if (id >= analysis.seq) break;
      if (event !== 'usage') continue;
      tokens += data.input_tokens + data.output_tokens;
      cost += data.cost_usd;
    }
    return {label, text, strategy: analysis.strategy, reasoning: analysis.reasoning, tokens, cost, ms};
  }

  /** Plays one story in this workspace. */
  async played({name, files = {}, turns, expects}) {
    for (const [path, text] of Object.entries(files)) {
      await this.api.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: this.path, query: {path}, body: text});
    }
    const watched = expects.unchanged ?? [];
    const before = await this.#versions(watched);
    const began = performance.now();
    const seen = {answer: '', end: 'nothing', tools: [], steps: 0, tokens: 0};
    const strategies = [];
    const chats = new Set();
    let session;
    for (const {say, context, entity, strategy} of turns) {
      seen.answer = '';
      const body = {message: say, context_type: context, ...(entity ? {entity_id: entity} : {}), ...(session ? {session_id: session} : {})};
      for await (const frame of this.say(body)) {
        if (frame.type === 'session') session = frame.session.id;
        else if (frame.type === 'analysis') strategies.push(strategy.includes(frame.analysis.strategy) ? frame.analysis.strategy : `${frame.analysis.strategy}?`);
        else if (frame.type === 'text') seen.answer += frame.content;
        else if (frame.type === 'tool_call') seen.tools.push(frame.tool_call.function?.name ?? frame.tool_call.name);
        else if (frame.type === 'plan_created') seen.steps = Math.max(seen.steps, frame.plan.steps.length);
        else if (frame.type === 'executor_spawned') chats.add(frame.executorId);
        else if (frame.type === 'done') seen.end = frame.finished_reason;
      }
    }
    const ms = performance.now() - began;
    let [tokens, cost] = [0, 0];
    for (const chat of [session, ...chats]) {
      const {usage, messages} = await this.api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...this.path, chat_id: chat}});
      tokens += usage.input_tokens + usage.output_tokens;
      cost += usage.cost_usd;
      if (chat !== session) seen.tools.push(...messages.flatMap(({calls = []}) => calls.map(({tool}) => tool)));
    }
    const all = {};
    const wanted = Object.keys(expects.files ?? {});
    for (const path of wanted.length > 0 ? await this.#paths() : []) all[path] = await this.#text(path);
    const versions = {before, after: await this.#versions(watched)};
    return {name, faults: faults(expects, {...seen, files: all, versions}), strategies: strategies.join(', '), tokens, cost, ms};
  }

  async #versions(paths) {
    const versions = {};
    for (const path of paths) {
      const file = await this.api.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: this.path, query: {path}});
      versions[path] = file.v;
    }
    return versions;
  }

  async #text(path) {
    return (await this.api.read('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: this.path, query: {path}})).text();
  }

  async #paths() {
    const {result} = await this.api.post('/api/v1/workspaces/{workspace_id}/tools', {path: this.path, body: {tool: 'glob', args: {pattern: '/projects/**/*.md'}}});
    return typeof result === 'string' ? result.split('\n').filter(line => line.startsWith('/')) : result.paths ?? result.files ?? [];
  }
}

const messages = (await readFile(new URL('../../../shared/chat/tests/data/messages.tsv', import.meta.url), 'utf8')).split('\n').filter(Boolean).map(line => {
  const [label, text] = line.split('\t');
  return {label, text};
});

const folder = await mkdtemp(join(tmpdir(), 'buildscale-eval-'));
let hub;
try {
  const ours = given.model ? {BUILDSCALE__AI__MODEL: given.model} : {BUILDSCALE__AI__MODEL: 'scripted/script', BUILDSCALE__AI__SCRIPT: join(folder, 'script.yaml')};
  Object.assign(ours, {BUILDSCALE__PLANNER__REQUESTS_PER_MINUTE: '0', BUILDSCALE__PLANNER__TOKENS_PER_MINUTE: '0'});
  if (!given.model) await writeFile(join(folder, 'script.yaml'), script());
  if (!given.url) hub = await startHub({env: ours, keepsKeys: given.model !== undefined, args: process.env.BUILDSCALE_CONFIG ? ['--config', process.env.BUILDSCALE_CONFIG] : []});
  const token = given.url ? process.env.BUILDSCALE_TOKEN : undefined;
  const api = new Client({url: given.url ?? hub.url, ...(token ? {token} : {})});
  const place = async name => new Place(api, (await api.post('/api/v1/workspaces', {body: {name}})).workspace_id);
  const office = count > 0 ? await place('Evaluation: messages') : undefined;
  const results = {
    model: given.url ? `that of ${given.url}` : ours.BUILDSCALE__AI__MODEL,
    messages: await each(count > 0 ? chosen(messages, count) : [], 'messages', message => office.analysed(message)),
    stories: await each(stories, 'stories', async story => (await place(`Evaluation: ${story.name}`)).played(story)),
  };
  console.log(report(results).join('\n'));
  if (given.json) await writeFile(given.json, `${JSON.stringify(results, null, 1)}\n`);
  if (results.stories.some(({faults}) => faults.length > 0)) process.exitCode = 1;
} finally {
  await hub?.stop();
  await rm(folder, {recursive: true, force: true});
}
