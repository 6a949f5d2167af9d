// A client of the planner chat, written from the types of its specification alone (spec 003 §1, §5, §6), without a package. Every frame is held to its type.

import {base, finish, workspace} from './common.mjs';

const door = `${base}/api/agent/stream?workspace_id=${workspace}`;

type ChatContextType =
  | 'global' | 'project' | 'calendar' | 'task' | 'project_create' | 'project_update' | 'project_audit' | 'project_forecast'
  | 'task_update' | 'daily_brief_update' | 'general';

interface AgentStreamRequest {
  message: string;
  session_id?: string;
  context_type?: ChatContextType;
  entity_id?: string;
  project_focus?: object | null;
  conversationHistory?: {role: 'user' | 'assistant'; content: string}[];
}

type PlanningStrategy = 'simple' | 'tool' | 'complex';
type Status = 'pending' | 'executing' | 'completed' | 'failed';

interface ComplexityAnalysis {
  strategy: PlanningStrategy;
  reasoning: string;
  estimatedOperations: number;
  requiresTools: boolean;
  requiresExecutors: boolean;
}

interface PlanStep {
  stepNumber: number;
  type: string;
  description: string;
  executorRequired: boolean;
  tools: string[];
  dependsOn?: number[];
  status: Status;
}

interface AgentPlan {
  id: string;
  sessionId: string;
  userId: string;
  userMessage: string;
  strategy: PlanningStrategy;
  steps: PlanStep[];
  status: Status;
}

interface ExecutorTask {
  id: string;
  description: string;
  goal: string;
  constraints?: string[];
  contextData?: unknown;
}

interface ExecutorResult {
  executorId: string;
  success: boolean;
  data?: unknown;
  error?: string;
  toolCallsMade: number;
  tokensUsed: number;
  durationMs: number;
}

interface ToolCall {
  id: string;
  type: 'function';
  function: {name: string; arguments: string};
}

interface ToolResult {
  tool_call_id: string;
  success: boolean;
}

/** A row of `chat_sessions`. */
interface ChatSession {
  id: string;
  user_id: string;
  context_type: string;
  status: 'active' | 'archived';
  title: string;
  message_count: number;
  total_tokens_used: number;
  agent_metadata: unknown;
  created_at: string;
  updated_at: string;
}

/** A row of `chat_messages`. */
interface ChatMessage {
  session_id: string;
  user_id: string;
  role: 'user' | 'assistant' | 'tool';
  content: string;
  created_at: string;
}

type AgentSSEMessage =
  | {type: 'session'; session: ChatSession}
  | {type: 'analysis'; analysis: ComplexityAnalysis}
  | {type: 'plan_created'; plan: AgentPlan}
  | {type: 'step_start'; step: PlanStep}
  | {type: 'step_complete'; step: PlanStep}
  | {type: 'executor_spawned'; executorId: string; task: ExecutorTask}
  | {type: 'executor_result'; executorId: string; result: ExecutorResult}
  | {type: 'text'; content: string}
  | {type: 'tool_call'; tool_call: ToolCall}
  | {type: 'tool_result'; result: ToolResult}
  | {type: 'error'; error: string}
  | {type: 'done'; usage?: {total_tokens: number}; finished_reason?: string};

// Types hold when this is compiled, and these hold when it runs. Each is made from its type, so it cannot leave a field out.
type Is<T> = (value: unknown) => value is T;
const string: Is<string> = (value) => typeof value === 'string';
const number: Is<number> = (value) => typeof value === 'number';
const boolean: Is<boolean> = (value) => typeof value === 'boolean';
const any: Is<unknown> = (value): value is unknown => true;
const optional = <T,>(is: Is<T>): Is<T | undefined> => (value): value is T | undefined => value === undefined || is(value);
const oneOf = <const T,>(...values: T[]): Is<T> => (value): value is T => (values as unknown[]).includes(value);
const arrayOf = <T,>(is: Is<T>): Is<T[]> => (value): value is T[] => Array.isArray(value) && value.every(is);
const object = <T,>(fields: {[Name in keyof Required<T>]: Is<T[Name]>}): Is<T> => (value): value is T =>
  value !== null && typeof value === 'object'
  && Object.entries(fields).every(([name, is]) => (is as Is<unknown>)((value as Record<string, unknown>)[name]));

const isStrategy = oneOf<PlanningStrategy>('simple', 'tool', 'complex');
const isStatus = oneOf<Status>('pending', 'executing', 'completed', 'failed');
const isAnalysis = object<ComplexityAnalysis>({
  strategy: isStrategy, reasoning: string, estimatedOperations: number, requiresTools: boolean, requiresExecutors: boolean,
});
const isStep = object<PlanStep>({
  stepNumber: number, type: string, description: string, executorRequired: boolean, tools: arrayOf(string), dependsOn: optional(arrayOf(number)),
  status: isStatus,
});
const isPlan = object<AgentPlan>({
  id: string, sessionId: string, userId: string, userMessage: string, strategy: isStrategy, steps: arrayOf(isStep), status: isStatus,
});
const isTask = object<ExecutorTask>({id: string, description: string, goal: string, constraints: optional(arrayOf(string)), contextData: any});
const isResult = object<ExecutorResult>({
  executorId: string, success: boolean, data: any, error: optional(string), toolCallsMade: number, tokensUsed: number, durationMs: number,
});
const isSession = object<ChatSession>({
  id: string, user_id: string, context_type: string, status: oneOf('active', 'archived'), title: string, message_count: number,
  total_tokens_used: number, agent_metadata: any, created_at: string, updated_at: string,
});
const isMessage = object<ChatMessage>({
  session_id: string, user_id: string, role: oneOf('user', 'assistant', 'tool'), content: string, created_at: string,
});
type Of<Kind extends AgentSSEMessage['type']> = Extract<AgentSSEMessage, {type: Kind}>;
const is: {[Kind in AgentSSEMessage['type']]: Is<Of<Kind>>} = {
  session: object<Of<'session'>>({type: oneOf('session'), session: isSession}),
  analysis: object<Of<'analysis'>>({type: oneOf('analysis'), analysis: isAnalysis}),
  plan_created: object<Of<'plan_created'>>({type: oneOf('plan_created'), plan: isPlan}),
  step_start: object<Of<'step_start'>>({type: oneOf('step_start'), step: isStep}),
  step_complete: object<Of<'step_complete'>>({type: oneOf('step_complete'), step: isStep}),
  executor_spawned: object<Of<'executor_spawned'>>({type: oneOf('executor_spawned'), executorId: string, task: isTask}),
  executor_result: object<Of<'executor_result'>>({type: oneOf('executor_result'), executorId: string, result: isResult}),
  text: object<Of<'text'>>({type: oneOf('text'), content: string}),
  tool_call: object<Of<'tool_call'>>({
    type: oneOf('tool_call'),
    tool_call: object<ToolCall>({id: string, type: oneOf('function'), function: object<ToolCall['function']>({name: string, arguments: string})}),
  }),
  tool_result: object<Of<'tool_result'>>({type: oneOf('tool_result'), result: object<ToolResult>({tool_call_id: string, success: boolean})}),
  error: object<Of<'error'>>({type: oneOf('error'), error: string}),
  done: object<Of<'done'>>({
    type: oneOf('done'), usage: optional(object<{total_tokens: number}>({total_tokens: number})), finished_reason: optional(string),
  }),
};

function event(data: string): AgentSSEMessage {
  const value: unknown = JSON.parse(data);
  const kind = Object.keys(is).find((kind) => is[kind as AgentSSEMessage['type']](value));
  if (kind === undefined) throw new Error(`no AgentSSEMessage: ${data}`);
  return value as AgentSSEMessage;
}

/** Sends an AgentStreamRequest and reads the answer to its end: `done` is last, an `error` comes right before it. */
async function stream(request: AgentStreamRequest): Promise<AgentSSEMessage[]> {
  const response = await fetch(door, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(request)});
  if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`);
  const events: AgentSSEMessage[] = [];
  let rest = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = block.split('\n').find((line) => line.startsWith('data: '));
      if (data) events.push(event(data.slice(6)));
    }
  }
  const kinds = events.map((event) => event.type);
  if (kinds.indexOf('done') !== kinds.length - 1) throw new Error(`done is not last: ${kinds}`);
  if (kinds.includes('error') && kinds.at(-2) !== 'error') throw new Error(`an error is not right before done: ${kinds}`);
  return events;
}

const kinds = (events: AgentSSEMessage[]) =>
  events.map((event) => event.type).filter((kind, at, all) => kind !== 'text' || all[at - 1] !== 'text');
const said = (events: AgentSSEMessage[]) => events.map((event) => (event.type === 'text' ? event.content : '')).join('');
const read = async (query = ''): Promise<{sessions?: unknown; messages?: unknown; session?: unknown}> =>
  (await fetch(door + query)).json() as Promise<object>;

const greeting = await stream({message: 'Hello!', context_type: 'global', conversationHistory: [{role: 'user', content: 'I am Ann.'}]});
const [first] = greeting;
if (first?.type !== 'session') throw new Error('a stream begins with its session');
const session_id = first.session.id;
const look = await stream({message: 'List the files', session_id, context_type: 'global', project_focus: null});
const plan = await stream({message: 'Study the atlas', session_id});
const end = plan.at(-1);
const {sessions} = await read();
const {messages} = await read(`&session_id=${session_id}`);
finish({
  greeting: [kinds(greeting), said(greeting)],
  look: kinds(look),
  plan: [...new Set(kinds(plan))],
  answer: said(plan),
  usage: end?.type === 'done' && (end.usage?.total_tokens ?? 0) > 0,
  sessions: arrayOf(isSession)(sessions) && sessions.length === 1 && (sessions[0]?.message_count ?? 0) > 4,
  messages: arrayOf(isMessage)(messages) && messages.length > 4,
});
