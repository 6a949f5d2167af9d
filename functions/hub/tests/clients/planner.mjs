// A client of the planner chat, written from the types of its specification alone (spec 003 §1, §5, §6), without a package. Every frame is held to its type.

import {base, finish, workspace} from './common.mjs';

const door = `${base}/api/agent/stream?workspace_id=${workspace}`;

const is = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  any: () => true,
};
const optional = (check) => (value) => value === undefined || check(value);
const oneOf = (...values) => (value) => values.includes(value);
const arrayOf = (check) => (value) => Array.isArray(value) && value.every(check);
const object = (fields) => (value) =>
  value !== null && typeof value === 'object' && Object.entries(fields).every(([name, check]) => check(value[name]));

const Strategy = oneOf('simple', 'tool', 'complex');
const Status = oneOf('pending', 'executing', 'completed', 'failed');
const ComplexityAnalysis = object({
  strategy: Strategy, reasoning: is.string, estimatedOperations: is.number, requiresTools: is.boolean, requiresExecutors: is.boolean,
});
const PlanStep = object({
  stepNumber: is.number, type: is.string, description: is.string, executorRequired: is.boolean, tools: arrayOf(is.string),
  dependsOn: optional(arrayOf(is.number)), status: Status,
});
const AgentPlan = object({
  id: is.string, sessionId: is.string, userId: is.string, userMessage: is.string, strategy: Strategy, steps: arrayOf(PlanStep), status: Status,
});
const ExecutorTask = object({
  id: is.string, description: is.string, goal: is.string, constraints: optional(arrayOf(is.string)), contextData: is.any,
});
const ExecutorResult = object({
  executorId: is.string, success: is.boolean, data: is.any, error: optional(is.string), toolCallsMade: is.number, tokensUsed: is.number,
  durationMs: is.number,
});
const ChatSession = object({
  id: is.string, user_id: is.string, context_type: is.string, status: oneOf('active', 'archived'), title: is.string, total_tokens_used: is.number,
  agent_metadata: is.any, created_at: is.string, updated_at: is.string,
});
const AgentSSEMessage = {
  session: object({session: ChatSession}),
  analysis: object({analysis: ComplexityAnalysis}),
  plan_created: object({plan: AgentPlan}),
  step_start: object({step: PlanStep}),
  step_complete: object({step: PlanStep}),
  executor_spawned: object({executorId: is.string, task: ExecutorTask}),
  executor_result: object({executorId: is.string, result: ExecutorResult}),
  text: object({content: is.string}),
  tool_call: object({
    tool_call: object({id: is.string, type: oneOf('function'), function: object({name: is.string, arguments: is.string})}),
  }),
  tool_result: object({result: object({tool_call_id: is.string, success: is.boolean})}),
  error: object({error: is.string}),
  done: object({usage: optional(object({total_tokens: is.number})), finished_reason: optional(is.string)}),
};

/** Sends an AgentStreamRequest and reads the answer to its end. */
async function stream(request) {
  const response = await fetch(door, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(request)});
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const frames = [];
  let rest = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split('\n').find((line) => line.startsWith('data: '));
      if (data) frames.push(JSON.parse(data.slice(6)));
    }
  }
  for (const frame of frames) {
    const check = AgentSSEMessage[frame.type];
    if (!check?.(frame)) throw new Error(`no AgentSSEMessage: ${JSON.stringify(frame)}`);
  }
  return frames;
}

const kinds = (frames) => frames.map((frame) => frame.type).filter((kind, at, all) => kind !== 'text' || all[at - 1] !== 'text');
const said = (frames) => frames.filter((frame) => frame.type === 'text').map((frame) => frame.content).join('');

const greeting = await stream({message: 'Hello!', context_type: 'global', conversationHistory: [{role: 'user', content: 'I am Ann.'}]});
const session_id = greeting[0].session.id;
const look = await stream({message: 'List the files', session_id, context_type: 'global', project_focus: null});
const plan = await stream({message: 'Study the atlas', session_id});
const listed = await (await fetch(door)).json();
const one = await (await fetch(`${door}&session_id=${session_id}`)).json();
const ChatMessage = object({
  session_id: is.string, user_id: is.string, role: oneOf('user', 'assistant', 'tool'), content: is.string, created_at: is.string,
});
finish({
  greeting: [kinds(greeting), said(greeting)],
  look: kinds(look),
  plan: [...new Set(kinds(plan))],
  answer: said(plan),
  usage: plan.at(-1).usage.total_tokens > 0,
  sessions: listed.sessions.length === 1 && listed.sessions.every(ChatSession),
  messages: one.messages.length > 4 && one.messages.every(ChatMessage),
});
