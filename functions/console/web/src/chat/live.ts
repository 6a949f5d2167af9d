/** A chat on the page: the store of the client, kept while the person looks at others. */
import {HubError, type ChatEvent} from 'buildscale';
import {ChatStore, type ChatState} from '../../../../../clients/typescript/src/store/chat.ts';
import {hub, queries, type Schemas} from '../hub.ts';
import {streamOf, useStore} from '../live.ts';

/** Chats that are kept beside the one that is shown, so that going back is at once. */
const KEPT = 8;

class PageChat extends ChatStore {
  /** Whether a call waits for a person or a program. */
  #waits = false;

  constructor(workspace: string, chat: string) {
    super(hub, streamOf(workspace), chat);
  }

  protected folded(events: readonly ChatEvent[]): void {
    if (this.#changesView(events)) void queries.invalidateQueries({queryKey: [this.stream.workspace, 'chat', this.path.chat_id]});
  }

  /** Whether the view is another one after these events. The answer to a call that waited changes it, and that of another call does not. */
  #changesView(events: readonly ChatEvent[]): boolean {
    let changes = false;
    for (const {event} of events) {
      changes ||= VIEW_CHANGES.has(event) || WAITS.has(event) || (event === 'observation' && this.#waits);
      this.#waits = WAITS.has(event) || (this.#waits && event !== 'observation');
    }
    return changes;
  }
}

/** Events after which the view of the chat (its state, its queue, its plan) is another one. */
const VIEW_CHANGES = new Set<string>(['turn_started', 'done', 'stopped', 'permission_resolved', 'mode_changed', 'plan_approved', 'error']);
/** Events after which a call waits for a person or a program. */
const WAITS = new Set<string>(['permission_required', 'question', 'call_handed_out']);

const kept = new Map<string, PageChat>();
function storeOf(workspace: string, chat: string): PageChat {
  const key = `${workspace}/${chat}`;
  const store = kept.get(key) ?? new PageChat(workspace, chat);
  kept.delete(key);
  kept.set(key, store);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(old);
  }
  return store;
}

export type Live = ChatState;

export function useChat(workspace: string, chat: string): Live & {older: () => Promise<void>; retry: () => void} {
  const store = storeOf(workspace, chat);
  const live = useStore(store);
  return {...live, older: store.loadOlder, retry: store.retry};
}

/** The chat as a whole: title, state, mode, sums. The transcript has the rest. */
export async function viewOf(workspace: string, chat: string, signal: AbortSignal): Promise<Schemas['ChatWithHistory']> {
  const path = {workspace_id: workspace, chat_id: chat};
  return hub.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, query: {before: Number.MAX_SAFE_INTEGER, limit: 1}, signal});
}

export const isGone = (error: unknown): boolean => error instanceof HubError && error.code === 'NOT_FOUND';
