import {HubError, jsonOf, refused, Unreachable} from './errors.ts';
import {backoff, pause, uuid} from './pause.ts';
import {bounded, TIMEOUT_MS} from './timeout.ts';
import type {Answer, Item, Method, PathOf, Request} from './typed.ts';

/** How to reach a hub. */
export interface Options {
  /** The address of the hub, such as `http://127.0.0.1:8686`. In a page that the hub itself serves: `location.origin`. */
  url: string;
  /** A token or API key, or a function that gets one, asked before each request. A hub on loopback needs none. */
  token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** How long a request that may be sent twice is repeated, in milliseconds, while the hub restarts or asks to come back later. */
  patienceMs?: number | undefined;
  /**
   * How long the answer to one request, and then each piece of it, may take, in milliseconds: 60,000 by default, 0 for no bound. A content that is sent
   * gets more, by its size. Streams of events have a bound of their own.
   */
  timeoutMs?: number | undefined;
  /** Another `fetch`, for tests. */
  fetch?: typeof fetch | undefined;
}

type Loose = {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  headers?: Record<string, string> | undefined;
  idempotencyKey?: string | undefined;
  timeoutMs?: number | undefined;
};

/** The arguments of a request: none are needed when nothing in it is. */
type Args<R> = {} extends R ? [request?: R] : [request: R];

/**
 * Speaks to a hub. Methods take the paths of its OpenAPI document, and their types come from there. A request that may be
 * sent twice (each read, each `PUT` without a condition, and each `POST`, since it carries an idempotency key) is repeated while the hub cannot be reached.
 */
export class Client {
  readonly url: string;
  readonly #options: Options;

  constructor(options: Options) {
    this.url = options.url.replace(/\/+$/, '');
    this.#options = options;
  }

  get<P extends PathOf<'get'>>(path: P, ...args: Args<Request<'get', P>>): Promise<Answer<'get', P>> {
    return this.#json('get', path, args[0]);
  }
  post<P extends PathOf<'post'>>(path: P, ...args: Args<Request<'post', P>>): Promise<Answer<'post', P>> {
    return this.#json('post', path, args[0]);
  }
  put<P extends PathOf<'put'>>(path: P, ...args: Args<Request<'put', P>>): Promise<Answer<'put', P>> {
    return this.#json('put', path, args[0]);
  }
  patch<P extends PathOf<'patch'>>(path: P, ...args: Args<Request<'patch', P>>): Promise<Answer<'patch', P>> {
    return this.#json('patch', path, args[0]);
  }
  delete<P extends PathOf<'delete'>>(path: P, ...args: Args<Request<'delete', P>>): Promise<Answer<'delete', P>> {
    return this.#json('delete', path, args[0]);
  }

  /** The answer as it is, for contents that are no JSON. Its status is 304 when a header `if-none-match` names the content. */
  read<P extends PathOf<'get'>>(path: P, ...args: Args<Request<'get', P>>): Promise<Response> {
    const request = (args[0] ?? {}) as Loose;
    return this.#repeat('get', path, request, answer => Promise.resolve(answer));
  }

  /** The elements of all pages of a list. */
  async *all<P extends PathOf<'get'>>(path: P, ...args: Args<Request<'get', P>>): AsyncGenerator<Item<Answer<'get', P>>> {
    const request = (args[0] ?? {}) as Loose;
    for (let cursor: string | undefined; ;) {
      const query = cursor === undefined ? request.query : {...request.query, cursor};
      const page = await this.#json<Record<string, unknown>>('get', path, {...request, query} as Loose);
      yield* (Object.values(page).find(Array.isArray) ?? []) as Item<Answer<'get', P>>[];
      if (typeof page.next_cursor !== 'string') return;
      cursor = page.next_cursor;
    }
  }

  /** The whole address of a path. @throws TypeError when no request can go there, now or later. @internal */
  whole(path: string): string {
    const url = this.url + path;
    if (!isHttp(url)) throw new TypeError(`${url} is no address of a hub: one begins with http:// or https://`);
    return url;
  }

  /** One request, sent once, with the token; any answer. Streams are built on it. @internal */
  async send(path: string, init: RequestInit & {anonymous?: boolean}): Promise<Response> {
    const {anonymous, ...rest} = init;
    const headers = new Headers(rest.headers);
    const {token} = this.#options;
    const secret = anonymous ? undefined : typeof token === 'function' ? await token() : token;
    if (secret) headers.set('authorization', `Bearer ${secret}`);
    const url = this.whole(path);
    try {
      return await (this.#options.fetch ?? fetch)(url, {...rest, headers});
    } catch (cause) {
      if (rest.signal?.aborted) throw rest.signal.reason;
      throw new Unreachable(url, cause);
    }
  }

  /** The options of {@link bounded} for one request. @internal */
  within(timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS): {url: string; timeoutMs: number} {
    return {url: this.url, timeoutMs};
  }

  async #json<T>(method: Method, path: string, request: unknown): Promise<T> {
    const loose = (request ?? {}) as Loose;
    const answer = await this.#repeat(method, path, loose, answer => this.#whole(answer, loose.signal));
    return (await jsonOf(() => this.whole(address(path, loose.path)), answer)) as T;
  }

  /** The same answer with all of its body, so that one that breaks off counts as none. */
  async #whole(answer: Response, signal: AbortSignal | undefined): Promise<Response> {
    try {
      const body = await answer.arrayBuffer();
      const {status, headers} = answer;
      return new Response(body.byteLength === 0 ? null : body, {status, headers});
    } catch (cause) {
      if (signal?.aborted) throw signal.reason;
      throw cause instanceof Unreachable ? cause : new Unreachable(this.url, cause);
    }
  }

  async #repeat(method: Method, template: string, request: Loose, taken: (answer: Response) => Promise<Response>): Promise<Response> {
    const path = address(template, request.path, request.query);
    const headers: Record<string, string> = {accept: 'application/json', ...request.headers};
    // The platforms follow some redirects of a change with a read, whose answer is none to the change.
    const init: RequestInit = {method: method.toUpperCase(), headers, redirect: method === 'get' ? 'follow' : 'manual'};
    if (request.body !== undefined) {
      const raw = typeof request.body === 'string' || request.body instanceof Uint8Array || request.body instanceof Blob;
      headers['content-type'] ??= raw ? 'application/octet-stream' : 'application/json';
      init.body = raw ? (request.body as BodyInit) : JSON.stringify(request.body);
    }
    if (method === 'post') headers['idempotency-key'] ??= request.idempotencyKey ?? uuid();
    const size = init.body instanceof Blob ? init.body.size : init.body instanceof Uint8Array ? init.body.byteLength : String(init.body ?? '').length;
    const bound = {...this.within(request.timeoutMs), size, signal: request.signal};
    return this.patiently(isRepeatable(method, headers), async () => taken(await bounded(signal => this.send(path, {...init, signal}), bound)), {
      // A reader that has the content by its ETag is told so.
      ...request, accepts: status => status === 304,
    });
  }

  /** Sends a request again as long as that may help, and gives the answer that is a success, or one that the caller accepts. @internal */
  async patiently(mayRepeat: boolean, send: () => Promise<Response>, settings: {signal?: AbortSignal | undefined; accepts?: (status: number) => boolean} = {}): Promise<Response> {
    const giveUp = Date.now() + (this.#options.patienceMs ?? 10_000);
    for (let failures = 0; ; failures++) {
      let failed: Unreachable | HubError;
      try {
        const answer = await send();
        if (answer.ok || settings.accepts?.(answer.status)) return answer;
        failed = await refused(answer);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        failed = error;
      }
      const asked = failed instanceof HubError ? failed.retryAfterMs : undefined;
      const wait = Math.max(backoff(failures, 1000), asked ?? 0);
      if (!isWorthIt(mayRepeat, failed) || Date.now() + wait > giveUp) throw failed;
      await pause(wait, settings.signal);
      settings.signal?.throwIfAborted();
    }
  }
}

function isHttp(url: string): boolean {
  try {
    // A page completes an address with its own. Programs have none, and in some platforms looking for it is an error.
    const base = /^https?:/i.test(url) ? undefined : globalThis.location?.href;
    return /^https?:$/.test(new URL(url, base).protocol);
  } catch {
    return false;
  }
}

/** Whether a request that may have begun is sent again. A condition holds once: the second `PUT` would be refused for the change of the first. */
function isRepeatable(method: Method, headers: Record<string, string>): boolean {
  const isConditional = Object.keys(headers).some(name => /^if-(none-)?match$/i.test(name));
  return method === 'get' || method === 'post' || (method === 'put' && !isConditional);
}

/** One that was put off by a limit, or that no connection took, did not begin. Pages are told nothing of connections. */
function isWorthIt(mayRepeat: boolean, failed: Unreachable | HubError): boolean {
  if (failed instanceof HubError ? failed.status === 429 : isRefused(failed)) return true;
  return mayRepeat && (failed instanceof Unreachable || [502, 503, 504].includes(failed.status));
}

/** Whether nobody listened at the address, as platforms other than pages tell. */
function isRefused({cause}: Unreachable): boolean {
  const inner = cause instanceof Error ? cause.cause : undefined;
  return typeof inner === 'object' && inner !== null && 'code' in inner && inner.code === 'ECONNREFUSED';
}

/** A path with its parameters filled in, and the query. */
export function address(template: string, path: Record<string, string | number> = {}, query: Record<string, unknown> = {}): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name];
    if (value === undefined || value === '') throw new TypeError(`${template} needs ${name}`);
    // They would lead to another route, however they are encoded.
    if (value === '.' || value === '..') throw new TypeError(`${value} is no ${name}`);
    return encodeURIComponent(String(value));
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text === '' ? filled : `${filled}?${text}`;
}
