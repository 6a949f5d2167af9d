/** A chat that is read: its history and its events. The hook for React and the console add to it. */
import type {Client} from '../client.ts';
import {EMPTY, Folding, prepend, rowsOf, type Transcript} from '../fold/chat.ts';
import type {WorkspaceStream} from '../shared.ts';
import type {ChatEvent} from '../stream.ts';
import {Store} from './store.ts';

export const CHATS = '/api/v1/workspaces/{workspace_id}/chats';
export const CHAT = `${CHATS}/{chat_id}` as const;
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Messages of one page of the history, about. */
const PAGE = 200;

export interface ChatState {
  /** The chat; none before its first message. */
  chat: string | undefined;
  transcript: Transcript;
  /** Whether the history is there. */
  loaded: boolean;
  /** The number before which older messages are; none at the beginning of the chat. */
  before: number | undefined;
  /** Whether a message was sent whose turn no event has told of yet. */
  isSent: boolean;
  error: Error | undefined;
}

/** Events after which the transcript tells by itself whether a turn runs. */
const TOLD = new Set<string>(['message', 'turn_started', 'done', 'stopped', 'error']);

export class ChatStore extends Store<ChatState, ChatEvent> {
  #cursor: number | undefined;
  /** Counts the readings of the history: an older page belongs to one of them. */
  #loads = 0;
  /** How many of the last rows the stream has yet to tell of. */
  #ahead = 0;
  /** The number of the last event that the history has. */
  #known = 0;

  constructor(readonly client: Client, readonly stream: WorkspaceStream, chat: string | undefined) {
    super({chat, transcript: EMPTY, loaded: chat === undefined, before: undefined, isSent: false, error: undefined});
  }

  get path(): {workspace_id: string; chat_id: string} {
    return {workspace_id: this.stream.workspace, chat_id: this.snapshot().chat ?? ''};
  }

  /**
   * Reads the newest page of the history. The stream then begins at the last turn, so nothing between the two is missed; after a reset it goes on after
   * the event with the number `after`.
   */
  async #load(signal: AbortSignal, after?: number): Promise<number> {
    const chat = await this.client.get(CHAT, {path: this.path, query: {before: NEWEST, limit: PAGE}, signal});
    const rows = rowsOf(chat.messages);
    const last = rows.findLast(row => row.kind === 'user');
    const turn = chat.turn_seq ?? (last?.kind === 'user' ? last.seq : chat.last_seq + 1);
    const folding = new Folding({...EMPTY, rows, turn: chat.turn_id ?? undefined, mode: chat.mode, paused: chat.paused_reason ?? undefined});
    // The stream tells of them again, but not after a reset.
    for (const asked of chat.waiting_for ?? []) folding.add({id: 0, ...asked} as unknown as ChatEvent);
    this.drop();
    this.#loads++;
    const transcript = folding.done();
    const cursor = after ?? Math.max(0, Math.min(turn - 1, chat.last_seq));
    const told = rowsOf(chat.messages.filter(({seq}) => seq <= cursor)).length;
    this.#ahead = told === rows.length ? 0 : transcript.rows.length - told;
    this.#known = Math.max(chat.last_seq, chat.messages.at(-1)?.seq ?? 0);
    this.set({transcript, loaded: true, before: chat.next_before ?? undefined, isSent: chat.status === 'queued', error: undefined});
    return this.#cursor = cursor;
  }

  protected async read(signal: AbortSignal): Promise<void> {
    const {chat} = this.snapshot();
    if (chat === undefined) return;
    const after = this.#cursor ?? await this.#load(signal);
    for await (const event of this.stream.chat(chat, {after, signal})) {
      if (signal.aborted) return;
      if (event.event === 'reset') {
        this.#cursor = undefined;
        await this.#load(signal, event.data.after);
        continue;
      }
      this.#cursor = event.id;
      this.put(event);
    }
  }

  protected fold(state: ChatState, events: readonly ChatEvent[]): ChatState {
    const folding = new Folding(state.transcript, this.#ahead);
    for (const event of events) {
      if (event.id > this.#known) folding.leave();
      folding.add(event);
    }
    this.#ahead = folding.ahead;
    return {...state, transcript: folding.done(), isSent: state.isSent && !events.some(({event}) => TOLD.has(event))};
  }

  /** Reads an older page of the history. */
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
}
