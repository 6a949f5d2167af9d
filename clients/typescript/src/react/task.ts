'use client';
/** A task of a flow as the state of a component: its events, folded once per frame. */
import {useMemo, useSyncExternalStore} from 'react';
import type {Client} from '../client.ts';
import type {Ask, Run} from '../fold/task.ts';
import type {components} from '../schema.ts';
import type {WorkspaceStream} from '../shared.ts';
import {streamOf} from '../store/store.ts';
import {TaskStore, type TaskState} from '../store/task.ts';

type Schemas = components['schemas'];

const TASK = '/api/v1/workspaces/{workspace_id}/tasks/{task_id}';

/** The task to show. */
export interface TaskOptions {
  client: Client;
  workspace: string;
  task: string;
  /** The connection; by default one per client and workspace, which all hooks share. */
  stream?: WorkspaceStream | undefined;
}

/**
 * `question`: a node, or its agent, waits for a person. `paused`: it waits for `resume`. `partial`: it ended, and some of its nodes failed. `merged`: a clone or
 * a subtask went on in the task above it. `failed`: it ended without success (`failure`), or cannot be read (`error`).
 */
export type TaskStatus = 'loading' | 'running' | 'question' | 'paused' | 'success' | 'partial' | 'failed' | 'stopped' | 'merged';

/** The questions of a node to people. */
export type NodeQuestions = Ask & {
  /** Answers, by the names of the questions. @throws HubError */
  answer: (answers: Record<string, unknown>) => Promise<void>;
};

/** A task, and its commands, which throw a `HubError` when the hub refuses. */
export interface TaskView {
  status: TaskStatus;
  /** The nodes that have begun, by their names. `chat` of a node is the id of its agent's chat, for `useChat`, where an agent that `asks` is answered. */
  nodes: Run['nodes'];
  /** The edges that were taken, as `from>to`. */
  takenEdges: Run['taken'];
  /** The steps of the run in words, oldest first. */
  steps: Run['steps'];
  /** The open questions of nodes. Those of agents are in the chats of their nodes. */
  questions: readonly NodeQuestions[];
  /** The node before which the task is paused. */
  paused: string | undefined;
  /** The reason for which the task is put aside: a command failed again and again. */
  parked: string | undefined;
  input: unknown;
  /** The result, when it has ended. */
  output: unknown;
  /** The reason for which it failed or was stopped, in words, when it has ended. */
  failure: string | undefined;
  /** The reason why the task is not followed any more, for example the `HubError` of one that is gone. */
  error: Error | undefined;
  /** Stops it, with its clones and subtasks. */
  stop: () => Promise<void>;
  /** Goes on with a task that is `paused`. Of one that is put aside, `drop` gives up the part that failed. */
  resume: (how?: Schemas['ResumeTaskRequest']) => Promise<void>;
  /** Reads the task again after an `error`. */
  retry: () => void;
}

class LiveTask extends TaskStore {
  readonly stop = async (): Promise<void> => {
    await this.client.post(`${TASK}/stop`, {path: {workspace_id: this.stream.workspace, task_id: this.task}});
  };

  readonly resume: TaskView['resume'] = async how => {
    await this.client.post(`${TASK}/resume`, {path: {workspace_id: this.stream.workspace, task_id: this.task}, body: {...how}});
  };

  view({run, loaded, error}: TaskState): TaskView {
    const {nodes, taken, steps, paused, parked, input, end} = run;
    const asks = run.asks.length > 0 || [...nodes.values()].some(({status}) => status === 'asks');
    const answers = (node: string): NodeQuestions['answer'] => async answers => {
      await this.client.post(`${TASK}/answers/{node}`, {path: {workspace_id: this.stream.workspace, task_id: this.task, node}, body: {answers}});
    };
    const going = parked !== undefined ? 'paused' : asks ? 'question' : paused !== undefined ? 'paused' : 'running';
    const ended = end && (end.status === 'failure' ? 'failed' : (end.status as 'success' | 'partial' | 'stopped' | 'merged'));
    return {
      status: error !== undefined ? 'failed' : !loaded ? 'loading' : ended ?? going,
      nodes, takenEdges: taken, steps, paused, parked, input, output: end?.output, failure: end?.error, error,
      questions: run.asks.map(ask => ({...ask, answer: answers(ask.node)})),
      stop: this.stop, resume: this.resume, retry: this.retry,
    };
  }
}

/** A task: the state of its nodes, and what a person may do. It follows the task while the component is mounted, and renders at most once per frame. */
export function useTask({client, workspace, task, stream}: TaskOptions): TaskView {
  const store = useMemo(() => new LiveTask(client, stream ?? streamOf(client, workspace), task), [client, workspace, task, stream]);
  const state = useSyncExternalStore(store.subscribe, store.snapshot, store.serverSnapshot);
  return useMemo(() => store.view(state), [store, state]);
}
