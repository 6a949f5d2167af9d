/** A chat on the page: its history, then its events, folded once per frame. */
import {HubError, type ChatEvent} from 'buildscale';
import {useEffect, useState, useSyncExternalStore} from 'react';
import {hub, queries, type Schemas} from '../hub.ts';
import {streamOf, useVisible} from '../live.ts';
import {EMPTY, Folding, prepend, rowsOf, type Transcript} from './fold.ts';

const NEWEST = Number.MAX_SAFE_INTEGER;
const PAGE = 200;
/** Chats that are kept beside the one that is shown, so that going back is at once. */
const KEPT = 8;

export interface Live {
  transcript: Transcript;
  /** Whether the history is there. */
  loaded: boolean;
  /** The number before which older messages are; none at the beginning of the chat. */
  before: number | undefined;
  error: unknown;
}

class ChatStore {
  live: Live = {transcript: EMPTY, loaded: false, before: undefined, error: undefined};
  #cursor: number | undefined;
  #pending: ChatEvent[] = [];
  #frame: number | undefined;
  /** Whether a call waits for a person or a program. */
  #waits = false;
  #listeners = new Set<() => void>();

  constructor(readonly workspace: string, readonly chat: string) {}

  subscribe = (listen: () => void): (() => void) => {
    this.#listeners.add(listen);
    return () => this.#listeners.delete(listen);
  };
  snapshot = (): Live => this.live;

  #set(change: Partial<Live>): void {
    this.live = {...this.live, ...change};
    this.#listeners.forEach(listen => listen());
  }

  /** Reads the newest page of the history. The stream then begins at the last turn, so nothing between the two is missed. */
  async #load(signal: AbortSignal): Promise<void> {
    const path = {workspace_id: this.workspace, chat_id: this.chat};
    const chat = await hub.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, query: {before: NEWEST, limit: PAGE}, signal});
    const rows = rowsOf(chat.messages);
    const last = rows.findLast(row => row.kind === 'user');
    const turn = chat.turn_seq ?? (last?.kind === 'user' ? last.seq : chat.last_seq + 1);
    this.#cursor = Math.max(0, Math.min(turn - 1, chat.last_seq));
    // The stream tells them again, from the last turn on.
    this.#pending = [];
    const transcript = {...EMPTY, rows, turn: chat.turn_id ?? undefined, mode: chat.mode, paused: chat.paused_reason ?? undefined};
    this.#set({transcript, loaded: true, before: chat.next_before ?? undefined, error: undefined});
  }

  async follow(signal: AbortSignal): Promise<void> {
    try {
      if (this.#cursor === undefined) await this.#load(signal);
      for await (const event of streamOf(this.workspace).chat(this.chat, {after: this.#cursor ?? 0, signal})) {
        // An event that was on its way when the page was left belongs to the next reader.
        if (signal.aborted) return;
        if (event.event === 'reset') {
          await this.#load(signal);
          continue;
        }
        this.#cursor = event.id;
        this.#pending.push(event);
        this.#frame ??= document.hidden ? window.setTimeout(this.#flush, 200) : requestAnimationFrame(this.#flush);
      }
    } catch (error) {
      if (!signal.aborted) this.#set({error, loaded: true});
    }
  }

  #flush = (): void => {
    this.#frame = undefined;
    const events = this.#pending.splice(0);
    const folding = new Folding(this.live.transcript);
    events.forEach(event => folding.add(event));
    this.#set({transcript: folding.done()});
    if (this.#changesView(events)) void queries.invalidateQueries({queryKey: [this.workspace, 'chat', this.chat]});
  };

  /** Whether the view is another one after these events. The answer to a call that waited changes it, and that of another call does not. */
  #changesView(events: ChatEvent[]): boolean {
    let changes = false;
    for (const {event} of events) {
      changes ||= VIEW_CHANGES.has(event) || WAITS.has(event) || (event === 'observation' && this.#waits);
      this.#waits = WAITS.has(event) || (this.#waits && event !== 'observation');
    }
    return changes;
  }

  async older(): Promise<void> {
    const before = this.live.before;
    if (before === undefined) return;
    this.#set({before: undefined});
    const path = {workspace_id: this.workspace, chat_id: this.chat};
    try {
      const page = await hub.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, query: {before, limit: PAGE}});
      this.#set({transcript: prepend(this.live.transcript, rowsOf(page.messages)), before: page.next_before ?? undefined});
    } catch (error) {
      this.#set({before});
      throw error;
    }
  }
}

/** Events after which the view of the chat (its state, its queue, its plan) is another one. */
const VIEW_CHANGES = new Set<string>(['turn_started', 'done', 'stopped', 'permission_resolved', 'mode_changed', 'plan_approved', 'error']);
/** Events after which a call waits for a person or a program. */
const WAITS = new Set<string>(['permission_required', 'question', 'call_handed_out']);

const kept = new Map<string, ChatStore>();
function storeOf(workspace: string, chat: string): ChatStore {
  const key = `${workspace}/${chat}`;
  const store = kept.get(key) ?? new ChatStore(workspace, chat);
  kept.delete(key);
  kept.set(key, store);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(old);
  }
  return store;
}

export function useChat(workspace: string, chat: string): Live & {older: () => Promise<void>; retry: () => void} {
  const visible = useVisible();
  const [attempt, setAttempt] = useState(0);
  const store = storeOf(workspace, chat);
  const live = useSyncExternalStore(store.subscribe, store.snapshot);
  useEffect(() => {
    if (!visible) return;
    const controller = new AbortController();
    void store.follow(controller.signal);
    return () => controller.abort();
  }, [store, visible, attempt]);
  return {...live, older: () => store.older(), retry: () => setAttempt(attempt + 1)};
}

/** The chat as a whole: title, state, mode, sums. The transcript has the rest. */
export async function viewOf(workspace: string, chat: string, signal: AbortSignal): Promise<Schemas['ChatWithHistory']> {
  const path = {workspace_id: workspace, chat_id: chat};
  return hub.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, query: {before: NEWEST, limit: 1}, signal});
}

export const isGone = (error: unknown): boolean => error instanceof HubError && error.code === 'NOT_FOUND';
