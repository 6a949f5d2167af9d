import {address, type Client} from './client.ts';
import {HubError, refused, Unreachable} from './errors.ts';
import {jsonOrText} from './json.ts';
import {backoff, onAbort, orAborted, pause} from './pause.ts';
import type {components} from './schema.ts';
import {Parser} from './sse.ts';
import {tooLate} from './timeout.ts';

type Schemas = components['schemas'];
/** An event of a stream: its number or cursor, its name, and its data. */
export type ChatEvent = Schemas['ChatEvent'];
export type TaskEvent = Schemas['TaskEvent'];
export type WorkspaceEvent = Schemas['WorkspaceEvent'];

/** The stream to watch: that of a chat or of a task; without either, the changes of a workspace. */
export interface Source {
  workspace: string;
  chat?: string;
  task?: string;
}

/** The state of the connection of a stream. */
export type Connection =
  | {state: 'connecting'}
  | {state: 'open'}
  | {state: 'waiting'; reason: Unreachable | HubError | 'ended'; retryInMs: number};

/** Settings of a stream. */
export interface Watching {
  /** The number of the last event that the caller has; 0 for all events. Without it the stream begins where the hub's routes say. */
  after?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Told of each change of the connection. */
  onConnection?: ((connection: Connection) => void) | undefined;
  /** Opens the stream with a ticket instead of the token, for networks that strip headers from streams. */
  ticket?: boolean | undefined;
  /** Ends the pause before the next connection when it aborts, for example because the network is back. */
  wake?: (() => AbortSignal | undefined) | undefined;
}

const STREAM = 'text/event-stream';
/** The hub sends a comment every 15 s. A connection that is silent for longer than this is dead. */
const SILENCE_MS = 40_000;
/** The longest pause before the next connection, beside the time that the hub asks for. */
const LONGEST_PAUSE_MS = 5_000;
export const LAST_OF_TASK = new Set(['done', 'stopped', 'went_up']);

/**
 * The events of a chat, from its log. The iterator reconnects with its cursor until it is left or `signal` aborts, and gives each event once.
 *
 * An event named `reset` says that the cursor means nothing to the hub: read the chat again.
 *
 * @throws HubError when the hub refuses for good, for example because the chat is gone.
 */
export function watchChat(hub: Client, source: Source & {chat: string}, watching: Watching = {}): AsyncGenerator<ChatEvent> {
  // Without an id it would be the stream of the workspace.
  return watch(hub, {...source, chat: source.chat ?? ''}, watching) as AsyncGenerator<ChatEvent>;
}

/** The events of a task, up to its last one. See {@link watchChat}. */
export async function* watchTask(hub: Client, source: Source & {task: string}, watching: Watching = {}): AsyncGenerator<TaskEvent> {
  for await (const event of watch(hub, {...source, task: source.task ?? ''}, watching)) {
    yield event as TaskEvent;
    if (LAST_OF_TASK.has(event.event)) return;
  }
}

/** The changes of a workspace: files, chats and tasks. A change may come again after a reconnect. See {@link watchChat}. */
export function watchWorkspace(hub: Client, workspace: string, watching: Watching = {}): AsyncGenerator<WorkspaceEvent> {
  return watch(hub, {workspace}, watching) as AsyncGenerator<WorkspaceEvent>;
}

/** The parts of a stream that several readers share. */
interface Shared {
  /** The chats and tasks whose events come along, as the hub wants them in `actors`. */
  actors: () => string;
  /** Ends the present connection when it aborts: the next one begins at once, with other actors. */
  again: () => AbortSignal;
  /** Whether the stream goes on without what the hub refused. */
  isHandled: (refusal: HubError) => boolean;
}

interface Loose {
  id: number;
  event: string;
  data: unknown;
}

/** @internal */
export async function* watch(hub: Client, source: Source, watching: Watching, shared?: Shared): AsyncGenerator<Loose> {
  const {signal} = watching;
  const path = streamPath(source);
  hub.whole(path);
  let fault: {error: unknown} | undefined;
  // An error of the caller is no reason to connect again.
  const tell = (connection: Connection): void => {
    try {
      watching.onConnection?.(connection);
    } catch (error) {
      fault = {error};
      throw error;
    }
  };
  let cursor = watching.after === undefined ? undefined : String(watching.after);
  // The reconnection time of the standard: it holds until the hub names another one.
  let retryMs = 0;
  for (let failures = 0; !signal?.aborted;) {
    const parser = new Parser();
    let reason: Unreachable | HubError | 'ended' = 'ended';
    // Ends this one connection: when the caller leaves, and when it is silent for too long.
    const connection = new AbortController();
    const leave = () => connection.abort(signal?.reason);
    const again = shared?.again();
    const forget = [onAbort(signal, leave), onAbort(again, leave)];
    // The time in which nobody reads does not count.
    const heard = <T>(promise: Promise<T>): Promise<T> => {
      const silence = setTimeout(() => connection.abort(tooLate(SILENCE_MS)), SILENCE_MS);
      return orAborted(promise, connection.signal).finally(() => clearTimeout(silence));
    };
    try {
      tell({state: 'connecting'});
      const along = shared?.actors() ?? '';
      const actors = along === '' ? '' : `actors=${encodeURIComponent(along)}`;
      const answer = await heard(open(hub, source, path, actors, cursor, watching.ticket ?? false, connection.signal));
      // The task has ended, and the caller has its last event.
      if (answer.status === 204) return;
      tell({state: 'open'});
      const decoder = new TextDecoder();
      const reader = answer.body!.getReader();
      for (;;) {
        const {done, value} = await heard(reader.read());
        if (done) break;
        failures = 0;
        for (const block of parser.push(decoder.decode(value, {stream: true}))) {
          const event: Loose = {id: Number(block.id), event: block.event, data: jsonOrText(block.data)};
          const place = event.event === 'reset' ? String((event.data as {after?: number}).after ?? block.id) : block.id;
          if (place !== '') cursor = place;
          yield event;
          // The caller may have left meanwhile.
          if (signal?.aborted) return;
        }
        if (parser.lastId !== '') cursor = parser.lastId;
      }
    } catch (error) {
      if (fault) throw fault.error;
      if (signal?.aborted) return;
      if (again?.aborted) continue;
      if (error instanceof HubError && !error.isPassing) {
        if (shared?.isHandled(error)) continue;
        throw error;
      }
      reason = error instanceof HubError || error instanceof Unreachable ? error : new Unreachable(hub.url, error);
    } finally {
      retryMs = parser.retryMs ?? retryMs;
      forget.forEach(one => one());
      connection.abort();
    }
    if (again?.aborted) continue;
    const asked = (reason !== 'ended' && 'retryAfterMs' in reason && reason.retryAfterMs) || 0;
    // The rest is in part chance, so that streams that ended together do not come back together.
    const wait = Math.max(asked, retryMs) + backoff(failures, LONGEST_PAUSE_MS);
    failures++;
    tell({state: 'waiting', reason, retryInMs: Math.round(wait)});
    await pause(wait, signal, watching.wake?.());
  }
}

async function open(hub: Client, source: Source, path: string, query: string, cursor: string | undefined, ticket: boolean, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {accept: STREAM};
  if (cursor !== undefined) headers['last-event-id'] = cursor;
  const byTicket = async () => hub.send(`${await ticketPath(hub, source, signal)}${query === '' ? '' : `&${query}`}`, {headers, signal, anonymous: true});
  let answer = ticket ? await byTicket() : await hub.send(`${path}${query === '' ? '' : `?${query}`}`, {headers, signal});
  // The ticket has expired on its way, as when the machine slept; the next one is fresh.
  if (ticket && answer.status === 401) answer = await byTicket();
  if (!answer.ok || (answer.body === null && answer.status !== 204)) throw await refused(answer);
  // A page of something between client and hub, such as the login of a network.
  const kind = answer.headers.get('content-type') ?? STREAM;
  if (answer.body !== null && !kind.startsWith(STREAM)) throw new Unreachable(hub.url, new TypeError(`the answer is ${kind}, and no event stream`));
  return answer;
}

function streamPath({workspace, chat, task}: Source): string {
  const place = chat === undefined ? (task === undefined ? '' : '/tasks/{task}') : '/chats/{chat}';
  return address(`/api/v1/workspaces/{workspace}${place}/events`, {workspace, ...(chat === undefined ? {} : {chat}), ...(task === undefined ? {} : {task})});
}

async function ticketPath(hub: Client, {workspace, chat, task}: Source, signal?: AbortSignal, after?: number): Promise<string> {
  const body = {...(chat === undefined ? {} : {chat_id: chat}), ...(task === undefined ? {} : {task_id: task}), ...(after === undefined ? {} : {after})};
  const request = {path: {workspace_id: workspace}, body, signal};
  return (await hub.post('/api/v1/workspaces/{workspace_id}/stream-tickets', request)).url;
}

/**
 * An address that opens a stream for a minute without a token: for `EventSource`, which cannot send headers. `after` is the number of the event after
 * which the stream begins, 0 for all.
 */
export async function ticketUrl(hub: Client, source: Source, after?: number): Promise<string> {
  return hub.url + (await ticketPath(hub, source, undefined, after));
}
