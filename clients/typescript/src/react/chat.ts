'use client';
/** A chat as the state of a component: its history and its events, folded once per frame. */
import {useMemo, useSyncExternalStore} from 'react';
import type {Client} from '../client.ts';
import {EMPTY, Folding, prepend, rowsOf, type Row, type Transcript} from '../fold/chat.ts';
import type {components} from '../schema.ts';
import type {WorkspaceStream} from '../shared.ts';
import type {ChatEvent} from '../stream.ts';
import {Store, streamOf} from './store.ts';

type Schemas = components['schemas'];
type RowOf<K extends Row['kind']> = Extract<Row, {kind: K}>;

const CHAT = '/api/v1/workspaces/{workspace_id}/chats/{chat_id}';
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Messages of one page of the history, about. */
const PAGE = 200;

/** The chat to show. */
export interface ChatOptions {
  client: Client;
  workspace: string;
  chat: string;
  /** The connection; by default one per client and workspace, which all hooks share. */
  stream?: WorkspaceStream;
}

/**
 * `running`: a turn runs, or is about to, since a message was sent. `permission` and `question`: a call waits for a person. `paused`: a command failed
 * again and again, until `resume`. `failed`: the last turn ended with an error (`failure`), or the chat cannot be read (`error`).
 */
export type ChatStatus = 'loading' | 'idle' | 'running' | 'permission' | 'question' | 'paused' | 'failed';

/** A call that waits for permission. */
export type Permission = RowOf<'permission'> & {
  /** Decides on the request as it is shown. @throws HubError with the code `CONFLICT` when it was decided meanwhile, or is another one. */
  answer: (outcome: Schemas['PermissionOutcome'], more?: Omit<Schemas['PermissionDecision'], 'outcome'>) => Promise<void>;
};

/** Questions of the agent to people. */
export type Question = RowOf<'question'> & {
  /** Answers, by the names of the questions. @throws HubError */
  answer: (answers: Record<string, unknown>) => Promise<void>;
};

/** A chat, and its commands, which throw a `HubError` when the hub refuses. */
export interface ChatView {
  /** The messages of people and of the agent, oldest first; the last one grows while it comes (`complete` is false). */
  messages: readonly RowOf<'user' | 'assistant'>[];
  /** The whole transcript: messages, calls with their results, requests to people, notices, and ends of turns. */
  rows: readonly Row[];
  /** The text of the answer that comes, as far as it has come; empty when none does. */
  partial: string;
  status: ChatStatus;
  /** The open requests. */
  permissions: readonly Permission[];
  questions: readonly Question[];
  /** The rest of the state: plan, mode, files, usage, and the reason for a wait that no person ends. */
  transcript: Transcript;
  /** The reason for which the last turn failed, in words, while `status` is `failed` for it. */
  failure: string | undefined;
  /** The reason why the chat is not shown or not followed any more, for example the `HubError` of one that is gone. It is read again by itself after a failure that passes. */
  error: Error | undefined;
  send: (content: string, more?: Omit<Schemas['NewMessage'], 'content'>) => Promise<void>;
  /** Stops the turn. The message after it, if one waits, begins the next turn. */
  stop: () => Promise<void>;
  /** Goes on with a chat that is `paused`: the failed turn is tried again, or given up with `drop`. */
  resume: (how?: Schemas['ResumeChatRequest']) => Promise<void>;
  /** Reads an older page of the history; none when the first message is there. */
  loadOlder: (() => Promise<void>) | undefined;
  /** Reads the chat again after an `error`. */
  retry: () => void;
}

interface State {
  transcript: Transcript;
  loaded: boolean;
  before: number | undefined;
  /** Whether a message was sent whose turn no event has told of yet. */
  isSent: boolean;
  error: Error | undefined;
}

/** Events after which the transcript tells by itself whether a turn runs. */
const TOLD = new Set<string>(['message', 'turn_started', 'done', 'stopped', 'error']);

class ChatStore extends Store<State, ChatEvent> {
  #cursor: number | undefined;
  /** Counts the readings of the history: an older page belongs to one of them. */
  #loads = 0;

  constructor(readonly client: Client, readonly stream: WorkspaceStream, readonly chat: string) {
    super({transcript: EMPTY, loaded: false, before: undefined, isSent: false, error: undefined});
  }

  get path(): {workspace_id: string; chat_id: string} {
    return {workspace_id: this.stream.workspace, chat_id: this.chat};
  }

  /** Reads the newest page of the history. The stream then begins at the last turn, so nothing between the two is missed. */
  async #load(signal: AbortSignal): Promise<number> {
    const chat = await this.client.get(CHAT, {path: this.path, query: {before: NEWEST, limit: PAGE}, signal});
    const rows = rowsOf(chat.messages);
    const last = rows.findLast(row => row.kind === 'user');
    const turn = chat.turn_seq ?? (last?.kind === 'user' ? last.seq : chat.last_seq + 1);
    const folding = new Folding({...EMPTY, rows, turn: chat.turn_id ?? undefined, mode: chat.mode, paused: chat.paused_reason ?? undefined});
    // The stream tells of them again, but not after a reset.
    for (const asked of chat.waiting_for ?? []) folding.add({id: 0, ...asked} as unknown as ChatEvent);
    this.drop();
    this.#loads++;
    this.set({transcript: folding.done(), loaded: true, before: chat.next_before ?? undefined, isSent: false, error: undefined});
    return this.#cursor = Math.max(0, Math.min(turn - 1, chat.last_seq));
  }

  protected async read(signal: AbortSignal): Promise<void> {
    const after = this.#cursor ?? await this.#load(signal);
    for await (const event of this.stream.chat(this.chat, {after, signal})) {
      if (signal.aborted) return;
      if (event.event === 'reset') {
        this.#cursor = undefined;
        await this.#load(signal);
        continue;
      }
      this.#cursor = event.id;
      this.put(event);
    }
  }

  protected fold(state: State, events: readonly ChatEvent[]): State {
    const folding = new Folding(state.transcript);
    events.forEach(event => folding.add(event));
    return {...state, transcript: folding.done(), isSent: state.isSent && !events.some(({event}) => TOLD.has(event))};
  }

  readonly loadOlder = async (): Promise<void> => {
    const {before} = this.snapshot();
    const loads = this.#loads;
    if (before === undefined) return;
    this.set({before: undefined});
    try {
      const page = await this.client.get(CHAT, {path: this.path, query: {before, limit: PAGE}});
      if (loads === this.#loads) this.set({transcript: prepend(this.snapshot().transcript, rowsOf(page.messages)), before: page.next_before ?? undefined});
    } catch (error) {
      if (loads === this.#loads) this.set({before});
      throw error;
    }
  };

  readonly send: ChatView['send'] = async (content, more) => {
    this.set({isSent: true});
    try {
      await this.client.post(CHAT, {path: this.path, body: {...more, content}});
    } catch (error) {
      this.set({isSent: false});
      throw error;
    }
  };

  readonly resume: ChatView['resume'] = async how => {
    await this.client.post(`${CHAT}/resume`, {path: this.path, body: {...how}});
  };

  readonly stop = async (): Promise<void> => {
    await this.client.post(`${CHAT}/stop`, {path: this.path});
  };

  view({transcript, loaded, before, isSent, error}: State): ChatView {
    const {rows, turn, paused} = transcript;
    const end = rows.findLastIndex(row => row.kind === 'end');
    // A request that a turn left when it was stopped is none any more.
    const open = turn === undefined ? [] : rows.slice(end + 1);
    const permissions = open.flatMap(row => row.kind !== 'permission' || row.outcome !== undefined ? [] : {...row, answer: this.#decides(row.id.slice(2), row.digest)});
    const questions = open.flatMap(row => row.kind !== 'question' || !row.open ? [] : {...row, answer: this.#answers(row.id.slice(2))});
    const last = rows[end];
    const hasFailed = turn === undefined && !isSent && last?.kind === 'end' && last.reason === 'error';
    const why = hasFailed ? rows.slice(0, end).findLast(row => row.kind === 'notice' && row.tone === 'error') : undefined;
    const state = !loaded ? 'loading' : paused !== undefined ? 'paused' : hasFailed ? 'failed' : turn === undefined && !isSent ? 'idle' : 'running';
    const asks = permissions.length > 0 ? 'permission' : questions.length > 0 ? 'question' : undefined;
    const coming = rows.findLast(row => row.kind === 'assistant' && !row.complete);
    return {
      rows, transcript, permissions, questions, error,
      failure: why?.kind === 'notice' ? why.text : undefined,
      messages: rows.filter(row => row.kind === 'user' || row.kind === 'assistant'),
      partial: coming?.kind === 'assistant' ? coming.text : '',
      status: error !== undefined ? 'failed' : state === 'running' ? asks ?? state : state,
      send: this.send, stop: this.stop, resume: this.resume, retry: this.retry, loadOlder: before === undefined ? undefined : this.loadOlder,
    };
  }

  #decides(permission_id: string, digest: string | undefined): Permission['answer'] {
    return async (outcome, more) => {
      await this.client.post(`${CHAT}/permissions/{permission_id}`, {path: {...this.path, permission_id}, body: {...(digest ? {digest} : {}), ...more, outcome}});
    };
  }

  #answers(question_id: string): Question['answer'] {
    return async answers => {
      await this.client.post(`${CHAT}/answers/{question_id}`, {path: {...this.path, question_id}, body: {answers}});
    };
  }
}

/** A chat: what it shows, and what a person may do. It follows the chat while the component is mounted, and renders at most once per frame. */
export function useChat({client, workspace, chat, stream}: ChatOptions): ChatView {
  const store = useMemo(() => new ChatStore(client, stream ?? streamOf(client, workspace), chat), [client, workspace, chat, stream]);
  const state = useSyncExternalStore(store.subscribe, store.snapshot, store.serverSnapshot);
  return useMemo(() => store.view(state), [store, state]);
}
