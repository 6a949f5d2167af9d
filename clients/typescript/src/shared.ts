import type {Client} from './client.ts';
import {HubError} from './errors.ts';
import {onAbort} from './pause.ts';
import {LAST_OF_TASK, watch, type ChatEvent, type TaskEvent, type Watching, type WorkspaceEvent} from './stream.ts';

/** The most chats and tasks on one connection, as the hub has it. */
const MOST = 32;

/** The ids of chats and tasks: of one that is none, the hub would refuse the connection of all readers. */
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function named(kind: 'chat' | 'task', id: string): string {
  const known = id.toLowerCase();
  if (!ID.test(known)) throw new TypeError(`${id} is no ${kind}`);
  return `${kind}:${known}`;
}

/** The reader of one chat or task. */
export interface Following {
  /** The number of the last event that the caller has; 0 for all events. Without it the events begin where the hub's routes say. */
  after?: number | undefined;
  signal?: AbortSignal | undefined;
}

interface Loose {
  id: number;
  event: string;
  data: unknown;
}
/** The data of an event of an actor, in the stream of its workspace. */
interface Inner extends Loose {
  chat_id?: string;
  task_id?: string;
}

/** One reader: of the changes, or of the actor `actor` (`chat:ID`). */
class Reader {
  readonly #events: Loose[] = [];
  #failed: {error: unknown} | undefined;
  #wake: (() => void) | undefined;
  /** Whether the present connection begins after events that this reader lacks. */
  isLate = false;

  constructor(readonly actor: string | undefined, public cursor: number | undefined) {}

  put(event: Loose): void {
    this.#events.push(event);
    this.wake();
  }

  fail(error: unknown): void {
    this.#failed ??= {error};
    this.wake();
  }

  /** Has the reader look again: for an event, for a failure, and whether its signal has aborted. */
  wake(): void {
    this.#wake?.();
  }

  async *read(signal: AbortSignal | undefined): AsyncGenerator<Loose> {
    while (!signal?.aborted) {
      const event = this.#events.shift();
      if (event) yield event;
      else if (this.#failed) throw this.#failed.error;
      else await new Promise<void>(resolve => { this.#wake = resolve; });
    }
  }
}

/**
 * The changes of a workspace and the events of up to 32 of its chats and tasks, over one connection; a reader of a further one throws a `RangeError`.
 * It is open while somebody reads, and is opened again, with the cursor of each, when a chat or a task is added. Each reader gets each event once and
 * in order. Events wait for a reader without a bound, so readers are to be fast.
 */
export class WorkspaceStream {
  readonly #readers = new Set<Reader>();
  #ending: AbortController | undefined;
  #again = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly hub: Client,
    readonly workspace: string,
    /** Its connection; `after` and `signal` are those of each reader. */
    readonly watching: Omit<Watching, 'after' | 'signal'> = {},
  ) {}

  /** The changes of the workspace from now on: files, chats and tasks. */
  changes({signal}: {signal?: AbortSignal | undefined} = {}): AsyncGenerator<WorkspaceEvent> {
    return this.#read(new Reader(undefined, undefined), signal) as AsyncGenerator<WorkspaceEvent>;
  }

  /** The events of a chat. @throws TypeError for an id that is none, HubError when the hub refuses for good, for example because the chat is gone. */
  chat(chat: string, {after, signal}: Following = {}): AsyncGenerator<ChatEvent> {
    return this.#read(new Reader(named('chat', chat), after), signal) as AsyncGenerator<ChatEvent>;
  }

  /** The events of a task, up to its last one, which a reader that has it already (`after`) does not get: it waits. @throws HubError when the hub refuses for good. */
  task(task: string, {after, signal}: Following = {}): AsyncGenerator<TaskEvent> {
    return this.#toItsEnd(new Reader(named('task', task), after), signal);
  }

  async *#toItsEnd(reader: Reader, signal: AbortSignal | undefined): AsyncGenerator<TaskEvent> {
    for await (const event of this.#read(reader, signal)) {
      yield event as TaskEvent;
      if (LAST_OF_TASK.has(event.event)) return;
    }
  }

  async *#read(reader: Reader, signal: AbortSignal | undefined): AsyncGenerator<Loose> {
    if (signal?.aborted) return;
    const actors = new Set([...this.#readers].flatMap(({actor}) => actor ?? []));
    // The hub would refuse the connection, and with it all readers.
    if (reader.actor !== undefined && actors.add(reader.actor).size > MOST) throw new RangeError(`one connection has at most ${MOST} chats and tasks`);
    this.#readers.add(reader);
    this.#changed();
    // At once, also when the caller is busy with an event and does not ask for the next one.
    const forget = onAbort(signal, () => this.#leave(reader));
    try {
      yield* reader.read(signal);
    } finally {
      forget();
      this.#leave(reader);
    }
  }

  #leave(reader: Reader, refusal?: unknown): void {
    if (refusal !== undefined) reader.fail(refusal);
    if (this.#readers.delete(reader)) this.#changed();
    reader.wake();
  }

  /** One new connection for all changes of this moment: a page leaves a chat and enters another. */
  #changed(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      if (this.#readers.size === 0) {
        this.#ending?.abort();
        this.#ending = undefined;
      } else if (this.#ending === undefined) {
        void this.#run(this.#ending = new AbortController());
      } else if (!this.#isServed()) this.#again.abort();
    }, 0);
  }

  /** The readers of actors for whom the present connection was opened. */
  #served: readonly Reader[] = [];
  /** The actors whose events begin where the hub says, because a reader of them has no cursor. */
  #unplaced: ReadonlySet<string> = new Set();
  /** Whether the connection has what its readers want, and nothing that nobody reads. A reader that came later may want events from before. */
  #isServed(): boolean {
    const wanted = [...this.#readers].filter(reader => reader.actor !== undefined);
    return wanted.every(reader => this.#served.includes(reader)) && this.#served.every(({actor}) => wanted.some(reader => reader.actor === actor));
  }

  /** The actors with the least cursor of their readers: the others have those events, and do not get them again. */
  #wanted(): string {
    const cursors = new Map<string, number | undefined>();
    for (const {actor, cursor} of this.#readers) {
      if (actor === undefined) continue;
      const known = cursors.get(actor);
      cursors.set(actor, cursors.has(actor) ? (known === undefined || cursor === undefined ? undefined : Math.min(known, cursor)) : cursor);
    }
    this.#served = [...this.#readers].filter(reader => reader.actor !== undefined);
    this.#unplaced = new Set([...cursors].flatMap(([actor, cursor]) => cursor === undefined ? actor : []));
    return [...cursors].map(([actor, cursor]) => cursor === undefined ? actor : `${actor}:${cursor}`).join();
  }

  async #run(ending: AbortController): Promise<void> {
    const shared = {
      actors: () => this.#wanted(),
      again: () => (this.#again = new AbortController()).signal,
      isHandled: (refusal: HubError) => this.#refused(refusal),
    };
    try {
      for await (const event of watch(this.hub, {workspace: this.workspace}, {...this.watching, signal: ending.signal}, shared)) this.#deal(event);
    } catch (error) {
      this.#readers.forEach(reader => this.#leave(reader, error));
    } finally {
      if (this.#ending === ending) this.#ending = undefined;
    }
  }

  #deal(event: Loose): void {
    if (event.event !== 'chat_event' && event.event !== 'task_event') {
      this.#readers.forEach(reader => reader.actor === undefined && reader.put(event));
      return;
    }
    const {chat_id: chat, task_id: task, ...inner} = event.data as Inner;
    const actor = chat === undefined ? `task:${task}` : `chat:${chat}`;
    // A reader that came later may want events from before: it begins with the next connection.
    for (const reader of this.#served) {
      if (reader.actor !== actor || !this.#readers.has(reader)) continue;
      if (inner.event === 'cursor') {
        const known = reader.cursor ??= inner.id;
        reader.isLate = this.#unplaced.has(actor) && inner.id > known;
        // By then each reader has a cursor, so the next connection begins where this one has to go on.
        if (reader.isLate) this.#again.abort();
        continue;
      }
      if (reader.isLate) continue;
      if (inner.event === 'reset') reader.cursor = (inner.data as {after?: number}).after ?? inner.id;
      else if (reader.cursor !== undefined && inner.id <= reader.cursor) continue;
      else reader.cursor = inner.id;
      reader.put(inner);
    }
  }

  /** A chat or a task that is gone ends its own readers. All of them may have left while the hub was asked: then it is not asked for again. */
  #refused(refusal: HubError): boolean {
    const gone = (refusal.details as {actor?: string} | undefined)?.actor;
    if (gone === undefined) return false;
    this.#readers.forEach(reader => reader.actor === gone && this.#leave(reader, refusal));
    return this.#served.some(({actor}) => actor === gone);
  }
}
