'use client';
/** A chat as the state of a component: its history and its events, folded once per frame. */
import {useInsertionEffect, useMemo, useState, useSyncExternalStore} from 'react';
import type {Client} from '../client.ts';
import type {Row, Transcript} from '../fold/chat.ts';
import {uuid} from '../pause.ts';
import type {components} from '../schema.ts';
import type {WorkspaceStream} from '../shared.ts';
import {CHAT, CHATS, ChatStore, type ChatState} from '../store/chat.ts';
import {streamOf} from '../store/store.ts';

type Schemas = components['schemas'];
type RowOf<K extends Row['kind']> = Extract<Row, {kind: K}>;

/** The chat to show. */
export interface ChatOptions {
  client: Client;
  workspace: string;
  /** The id of the chat. Without it there is none yet, and the first message makes one. */
  chat?: string | undefined;
  /** Settings of the chat that the first message makes, such as its persona (`role`), `model` and `mode`. */
  newChat?: Omit<Schemas['NewChat'], 'goal'> | undefined;
  /**
   * Told the id of the chat that the first message made, once. The hook shows that chat from then on, also when the component never names it. A component
   * that is gone, or shows another chat by then, is not told.
   */
  onChat?: ((chat: string) => void) | undefined;
  /** The connection; by default one per client and workspace, which all hooks share. */
  stream?: WorkspaceStream | undefined;
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
  /** The id of the chat; none before the first message. */
  chat: string | undefined;
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
  /**
   * Sends a message. Without a chat it makes one: the same message again, while the first is under way or after a failure, makes no second chat; another one
   * waits, and is sent to that chat.
   */
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

type Wants = Pick<ChatOptions, 'newChat' | 'onChat'>;

class LiveChat extends ChatStore {
  #wants: Wants = {};
  /** The message that makes the chat, as JSON, its idempotency key, and the request, while it is under way. */
  #first: {body: string; key: string; made: Promise<void> | undefined} | undefined;

  /** Has the settings for a new chat from a component, until the function that is returned is called. */
  serve(wants: Wants): () => void {
    this.#wants = wants;
    return () => {
      if (this.#wants === wants) this.#wants = {};
    };
  }

  readonly send: ChatView['send'] = async (content, more) => {
    this.set({isSent: true});
    try {
      await this.#say(content, more);
    } catch (error) {
      this.set({isSent: false});
      throw error;
    }
  };

  async #say(content: string, more: Parameters<ChatView['send']>[1]): Promise<void> {
    const {on_busy: _, expected_turn_id: __, ...said} = more ?? {};
    const body = {...this.#wants.newChat, ...said, goal: content};
    while (this.snapshot().chat === undefined) {
      const made = this.#first?.made;
      if (made === undefined) return this.#make(body);
      if (this.#first?.body === JSON.stringify(body)) return made;
      await made.catch(() => undefined);
    }
    await this.client.post(CHAT, {path: this.path, body: {...more, content}});
  }

  /** Makes the chat. The same body has the same key, so a request whose answer was lost is not made twice. */
  #make(body: Schemas['NewChat']): Promise<void> {
    const text = JSON.stringify(body);
    const first = this.#first = this.#first?.body === text ? this.#first : {body: text, key: uuid(), made: undefined};
    const request = {path: {workspace_id: this.stream.workspace}, body, idempotencyKey: first.key};
    return first.made = this.client.post(CHATS, request).then(({chat_id: chat}) => {
      this.set({chat});
      this.retry();
      // An error of the component is not one of the message.
      queueMicrotask(() => this.#wants.onChat?.(chat));
    }).finally(() => { first.made = undefined; });
  }

  readonly resume: ChatView['resume'] = async how => {
    await this.client.post(`${CHAT}/resume`, {path: this.path, body: {...how}});
  };

  readonly stop = async (): Promise<void> => {
    // One that was not made has no turn to stop.
    await this.#first?.made?.catch(() => undefined);
    if (this.snapshot().chat !== undefined) await this.client.post(`${CHAT}/stop`, {path: this.path});
  };

  view({chat, transcript, loaded, before, isSent, error}: ChatState): ChatView {
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
      chat, rows, transcript, permissions, questions, error,
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

interface Shown {
  store: LiveChat;
  /** The chat as the component named it. */
  chat: string | undefined;
}

/**
 * A chat: what it shows, and what a person may do. It follows the chat while the component is mounted, and renders at most once per frame. Without a chat
 * the first message makes one.
 */
export function useChat({client, workspace, chat, newChat, onChat, stream = streamOf(client, workspace)}: ChatOptions): ChatView {
  const [shown, show] = useState<Shown>(() => ({store: new LiveChat(client, stream, chat), chat}));
  let {store} = shown;
  const isSame = store.client === client && store.stream === stream;
  if (!isSame || shown.chat !== chat) {
    // The component names the chat that its first message made: that one is shown already.
    const isMade = isSame && shown.chat === undefined && store.snapshot().chat === chat;
    if (!isMade) store = new LiveChat(client, stream, chat);
    show({store, chat});
  }
  useInsertionEffect(() => store.serve({newChat, onChat}), [store, newChat, onChat]);
  const state = useSyncExternalStore(store.subscribe, store.snapshot, store.serverSnapshot);
  return useMemo(() => store.view(state), [store, state]);
}
