/** The fold of a task's events into the states of its nodes. Pure: the same events paint the same graph, live and afterwards. */
import type {components} from '../schema.ts';
import type {TaskEvent} from '../stream.ts';
import {counted} from './counts.ts';

type Schemas = components['schemas'];

export interface NodeState {
  status: 'running' | 'waiting' | 'asks' | 'done' | 'failed' | 'skipped';
  attempt: number;
  /** The time that it took, in milliseconds; none while it runs. */
  ms?: number;
  /** Of a node that clones and subtasks run: how many of them came to its end, of how many. */
  arrived?: number;
  total?: number;
  error?: string;
  chat?: string;
  output?: unknown;
}
export interface Ask {
  node: string;
  questions: readonly Schemas['Question'][];
}
export interface Run {
  nodes: ReadonlyMap<string, NodeState>;
  asks: readonly Ask[];
  /** The steps of the run, oldest first. */
  steps: readonly {id: number; at: string | undefined; node: string; text: string; tone: 'plain' | 'good' | 'bad' | 'ask'}[];
  paused: string | undefined;
  /** The reason for which the task is put aside until a person resumes it: a command failed again and again. */
  parked: string | undefined;
  input: unknown;
  /** The run that this one replays. */
  replay: Schemas['TaskReplay'] | undefined;
  end: {status: string; output: unknown; error: string | undefined} | undefined;
  /** The edges that were taken, as `from>to`. */
  taken: ReadonlySet<string>;
}

export const NO_RUN: Run = {nodes: new Map(), asks: [], steps: [], paused: undefined, parked: undefined, input: undefined, replay: undefined, end: undefined, taken: new Set()};

/** The states of nodes that have not ended. */
const GOING = new Set<NodeState['status'] | undefined>(['running', 'waiting', 'asks']);

export function fold(run: Run, events: readonly TaskEvent[]): Run {
  const nodes = new Map(run.nodes);
  const taken = new Set(run.taken);
  const steps = [...run.steps];
  let {asks, paused, parked, input, replay, end} = run;
  const set = (node: string, change: Partial<NodeState> & {status: NodeState['status']}) => nodes.set(node, {attempt: 1, ...nodes.get(node), ...change});
  for (const event of events) {
    const told = (node: string, text: string, tone: Run['steps'][number]['tone'] = 'plain') => {
      const at = 'at' in event.data ? String(event.data.at) : undefined;
      steps.push({id: event.id, at, node, text, tone});
    };
    // A task that is put aside does nothing: whatever it tells, it goes on.
    parked = undefined;
    switch (event.event) {
      case 'task_started':
        input = event.data.input;
        replay = event.data.replay ?? undefined;
        break;
      case 'node_started':
        set(event.data.node, {status: 'running', attempt: event.data.attempt});
        paused = undefined;
        if (event.data.attempt > 1) told(event.data.node, `attempt ${event.data.attempt} began`);
        break;
      case 'agent_asked':
        set(event.data.node, {status: 'running', chat: event.data.chat_id});
        break;
      case 'agent_waits': {
        const {node, chat_id: chat, asked} = event.data;
        // The chat may tell of its end after that of the node.
        if (!GOING.has(nodes.get(node)?.status)) break;
        set(node, {status: asked ? 'asks' : 'running', chat});
        if (asked) told(node, 'its agent asks people', 'ask');
        break;
      }
      case 'waiting':
        set(event.data.node, {status: 'waiting'});
        told(event.data.node, event.data.reason === 'backoff' ? 'waits for its next try' : 'waits for a place');
        break;
      case 'question':
        asks = [...asks.filter(ask => ask.node !== event.data.node), {node: event.data.node, questions: event.data.questions}];
        set(event.data.node, {status: 'asks'});
        told(event.data.node, 'asks people', 'ask');
        break;
      case 'answered':
        asks = asks.filter(ask => ask.node !== event.data.node);
        // The answer may have come before the question.
        if (nodes.get(event.data.node)?.status === 'asks') set(event.data.node, {status: 'running'});
        told(event.data.node, 'was answered');
        break;
      case 'node_finished': {
        const {node, status, error, metrics, output, attempt} = event.data;
        // A stop ended it. Other failures may have the same code.
        const stopped = status === 'failure' && error?.code === 'CANCELLED' && error.message.startsWith('stopped: ');
        const failed = status === 'failure' && !stopped;
        set(node, {status: stopped ? 'skipped' : failed ? 'failed' : 'done', attempt, ms: metrics.duration_ms, output, ...(error ? {error: error.message} : {})});
        asks = asks.filter(ask => ask.node !== node);
        if (!stopped) told(node, failed ? `failed: ${error?.message ?? 'no reason was given'}` : 'ended', failed ? 'bad' : 'good');
        break;
      }
      case 'caught':
        told(event.data.node, 'its failure is taken by an edge of its own');
        break;
      case 'routed':
        taken.add(`${event.data.from}>${event.data.to}`);
        break;
      case 'forked':
        for (const to of event.data.to) {
          taken.add(`${event.data.node}>${to}`);
          set(to, {status: 'running', arrived: 0, total: event.data.kind === 'subtask' ? event.data.total : 1});
        }
        told(event.data.node, event.data.kind === 'subtask' ? `made ${counted(event.data.total, 'subtask')}` : `went ${counted(event.data.total, 'way')}`);
        break;
      case 'child_arrived': {
        const {node, from, status} = event.data;
        taken.add(`${from}>${node}`);
        const known = nodes.get(from);
        if (known?.total !== undefined) {
          const arrived = (known.arrived ?? 0) + 1;
          const state = status === 'failure' ? 'failed' : arrived >= known.total && known.status !== 'failed' ? 'done' : known.status;
          set(from, {status: state, arrived});
        }
        break;
      }
      case 'paused':
        paused = event.data.node;
        set(event.data.node, {status: 'waiting'});
        told(event.data.node, 'the task is paused before it');
        break;
      case 'continued':
        paused = undefined;
        break;
      case 'denied':
        told(event.data.node, `refused by policy: ${event.data.what}`, 'bad');
        break;
      case 'error':
        parked = event.data.message;
        break;
      case 'went_up':
        end = {status: 'merged', output: undefined, error: undefined};
        break;
      case 'done':
      case 'stopped':
        end = {status: event.event === 'stopped' ? 'stopped' : event.data.status, output: event.data.output, error: event.data.error?.message};
        asks = [];
        for (const [node, state] of nodes) if (GOING.has(state.status)) nodes.set(node, {...state, status: event.event === 'stopped' ? 'skipped' : 'done'});
        break;
      default:
    }
  }
  return {nodes, asks, steps, paused, parked, input, replay, end, taken};
}
