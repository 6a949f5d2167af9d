import {HubError, Unreachable} from './errors.ts';

/** Timers of the platforms count in 32 bits; a longer one would end at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The pause before attempt `failures` + 1, in milliseconds: it doubles up to `longest`, and half of it is chance, so that clients do not come back at once. */
export function backoff(failures: number, longest: number, chance = Math.random()): number {
  const full = Math.min(100 * 2 ** Math.min(failures, 20), longest);
  return full / 2 + (full / 2) * chance;
}

/** Whether the same request may succeed later. */
export function passes(error: unknown): error is Unreachable | HubError {
  return error instanceof Unreachable || (error instanceof HubError && error.isPassing);
}

/** The pause before the request that failed with `error` is sent again, in milliseconds. */
export function rest(failures: number, error: Unreachable | HubError): number {
  return Math.max(backoff(failures, 5_000), (error instanceof HubError ? error.retryAfterMs : undefined) ?? 0);
}

const leaving = new WeakMap<EventTarget, Set<() => void>>();
const tellAll = ({currentTarget}: Event): void => [...(leaving.get(currentTarget!) ?? [])].forEach(leave => leave());

/**
 * Calls `leave` when `signal` aborts, until the function that is returned is called. All that wait for a signal share one listener: Node.js warns of a leak
 * at the eleventh, and many streams may have one signal.
 */
export function onAbort(signal: AbortSignal | undefined, leave: () => void): () => void {
  if (signal === undefined) return () => undefined;
  const all = leaving.get(signal) ?? new Set();
  leaving.set(signal, all.add(leave));
  if (all.size === 1) signal.addEventListener('abort', tellAll);
  return () => {
    if (all.delete(leave) && all.size === 0) signal.removeEventListener('abort', tellAll);
  };
}

/** Waits, at most 24 days; an aborted signal, or `wake`, ends the pause early. */
export function pause(milliseconds: number, signal?: AbortSignal, wake?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const ended = () => {
      clearTimeout(timer);
      forget.forEach(one => one());
      resolve();
    };
    const timer = setTimeout(ended, Math.min(milliseconds, LONGEST_TIMER_MS));
    const forget = [onAbort(signal, ended), onAbort(wake, ended)];
    if (signal?.aborted || wake?.aborted) ended();
  });
}

/** The same promise, which fails at once with the reason of `signal` when that aborts: a function of the caller, such as `token`, may never end. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, {once: true});
    promise.then(resolve, cause => reject(signal.aborted ? signal.reason : cause)).finally(() => signal.removeEventListener('abort', aborted));
  });
}

/** A random UUID. `crypto.randomUUID` is missing on pages that came over plain HTTP from another machine. */
export function uuid(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
