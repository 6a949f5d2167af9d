import {Unreachable} from './errors.ts';
import {LONGEST_TIMER_MS, onAbort, orAborted} from './pause.ts';

/** The default of {@link bounded}, as in the client for Python: longer than the 15 s after which the hub says something in a long answer. */
export const TIMEOUT_MS = 60_000;
export const tooLate = (ms: number): DOMException => new DOMException(`nothing came within ${ms} ms`, 'TimeoutError');
/** The slowest line that a content may be sent over, in bytes per second. */
const SLOWEST = 16 * 1024;

/**
 * Sends a request whose answer, and then each piece of it that is read, comes within `timeoutMs`; 0 or `Infinity` is without a bound. The time in which
 * nobody reads does not count. A body of `size` bytes gets the time that a slow line takes for it, too. When the time is up, or `signal` aborts, the
 * request is aborted, and the reading of the answer fails with an {@link Unreachable} or the reason of the signal.
 */
export async function bounded(
  send: (signal: AbortSignal) => Promise<Response>, {url, timeoutMs, size = 0, signal}: {url: string; timeoutMs: number; size?: number; signal: AbortSignal | undefined},
): Promise<Response> {
  signal?.throwIfAborted();
  const request = new AbortController();
  const end = onAbort(signal, () => request.abort(signal?.reason));
  const timed = <T>(promise: Promise<T>, ms: number): Promise<T> => {
    const late = () => request.abort(new Unreachable(url, tooLate(ms)));
    const timer = timeoutMs > 0 && ms <= LONGEST_TIMER_MS ? setTimeout(late, ms) : undefined;
    return orAborted(promise, request.signal).finally(() => clearTimeout(timer));
  };
  try {
    const answer = await timed(send(request.signal), timeoutMs + (size / SLOWEST) * 1000);
    if (answer.body === null) {
      end();
      return answer;
    }
    return new Response(pieces(answer.body, piece => timed(piece, timeoutMs), end), answer);
  } catch (error) {
    end();
    throw error;
  }
}

/** Platforms let go of the connection of a content that nobody has any more, but not while it has a reader. Some platforms lack the registry. */
const unread = typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry<() => void>(leave => leave());

/** The same body, each piece of which is waited for with `timed`; `end` is called when there is no more. */
function pieces(body: ReadableStream<Uint8Array<ArrayBuffer>>, timed: <T>(piece: Promise<T>) => Promise<T>, end: () => void): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const read = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const {done, value} = await timed(reader.read());
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  }, {highWaterMark: 0});
  unread?.register(read, () => {
    end();
    reader.cancel().catch(() => undefined);
  });
  return read;
}
