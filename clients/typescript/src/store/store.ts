import type {Client} from '../client.ts';
import {HubError} from '../errors.ts';
import {passes, pause, rest} from '../pause.ts';
import {WorkspaceStream} from '../shared.ts';

const streams = new WeakMap<Client, Map<string, WorkspaceStream>>();

/** The stream that all hooks of a client and a workspace share: browsers open six connections to a hub over HTTP/1.1. */
export function streamOf(client: Client, workspace: string): WorkspaceStream {
  const known = streams.get(client) ?? new Map<string, WorkspaceStream>();
  streams.set(client, known);
  const stream = known.get(workspace) ?? new WorkspaceStream(client, workspace);
  known.set(workspace, stream);
  return stream;
}

/** Frames of a page that nobody sees do not come; then this time in milliseconds is one. */
const HIDDEN_MS = 250;

/** Calls `draw` before the next frame of the page. The function that is returned calls it off. */
function onFrame(draw: () => void): () => void {
  const isPage = typeof requestAnimationFrame === 'function';
  const now = () => {
    cancel();
    draw();
  };
  const frame = isPage ? requestAnimationFrame(now) : undefined;
  const timer = setTimeout(now, isPage ? HIDDEN_MS : 16);
  const cancel = () => {
    clearTimeout(timer);
    if (frame !== undefined) cancelAnimationFrame(frame);
  };
  return cancel;
}

/**
 * A state that is folded from a stream, for `useSyncExternalStore`. It follows the stream while somebody listens, and goes on with the events that it lacks
 * when somebody listens again. Listeners are told once per frame.
 */
export abstract class Store<State extends {error: Error | undefined}, Event> {
  #state: State;
  readonly #listeners = new Set<() => void>();
  #pending: Event[] = [];
  #cancel: (() => void) | undefined;
  #following: AbortController | undefined;

  constructor(readonly empty: State) {
    this.#state = empty;
  }

  readonly snapshot = (): State => this.#state;
  readonly serverSnapshot = (): State => this.empty;
  readonly subscribe = (listen: () => void): (() => void) => {
    this.#listeners.add(listen);
    if (this.#listeners.size === 1) this.#follow();
    return () => {
      this.#listeners.delete(listen);
      if (this.#listeners.size === 0) this.#leave();
    };
  };

  /** Follows the stream again, after an error for example. */
  readonly retry = (): void => {
    if (this.#listeners.size === 0) return;
    this.#leave();
    this.#follow();
  };

  /** Reads the stream until it ends, or `signal` aborts. An event that was on its way by then belongs to the next reader, and is not put. */
  protected abstract read(signal: AbortSignal): Promise<void>;
  protected abstract fold(state: State, events: readonly Event[]): State;
  /** Told of events when the state has them. */
  protected folded(_events: readonly Event[]): void {}

  protected set(change: Partial<State>): void {
    this.#state = {...this.#state, ...change};
    this.#listeners.forEach(listen => listen());
  }

  /** Folds an event with the next frame. */
  protected put(event: Event): void {
    this.#pending.push(event);
    this.#cancel ??= onFrame(() => {
      this.#flush();
      this.#listeners.forEach(listen => listen());
    });
  }

  /** Forgets the events that are not folded yet. */
  protected drop(): void {
    this.#pending = [];
  }

  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const events = this.#pending.splice(0);
    if (events.length === 0) return;
    this.#state = this.fold(this.#state, events);
    this.folded(events);
  }

  #follow(): void {
    // It is of the reading before.
    if (this.#state.error !== undefined) this.set({error: undefined} as Partial<State>);
    const following = this.#following = new AbortController();
    // Not at once: a component that is mounted twice, as in StrictMode, reads once.
    queueMicrotask(() => {
      void this.#read(following.signal);
    });
  }

  /** Reads on after a failure that passes, as the stream itself does. A fault of the hub may stay, so it is for a person to try again. */
  async #read(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        return await this.read(signal);
      } catch (cause) {
        if (signal.aborted) return;
        const error = cause instanceof Error ? cause : new Error(String(cause));
        this.set({error} as Partial<State>);
        if (!passes(error) || (error instanceof HubError && error.status === 500)) return;
        await pause(rest(failures, error), signal);
      }
    }
  }

  #leave(): void {
    this.#following?.abort();
    // The next reader goes on after these.
    this.#flush();
  }
}
