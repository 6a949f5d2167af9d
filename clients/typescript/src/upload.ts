import type {Client} from './client.ts';
import {Unreachable} from './errors.ts';
import {onAbort} from './pause.ts';
import type {components} from './schema.ts';
import {Sha256} from './sha256.ts';
import {bounded} from './timeout.ts';

/** Settings of an upload. */
export interface Uploading {
  /** Told how many bytes have been sent, and how many there are. */
  onProgress?: ((sent: number, size: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}

type Transfer = NonNullable<components['schemas']['Transfer']['request']>;

/** The length of a part in bytes. A longer content is sent part by part, so that a broken upload goes on where it ended. */
const PART = 16 * 1024 * 1024;
/** The slowest that a hub reads a content whose parts are all there, in bytes per second: it does so before it answers. */
const SLOWEST_READ = 8 * 1024 * 1024;
/** The hub has forgotten the address of a part, or another upload of the same content was faster: then the state is asked for again. */
const LOST = [401, 403, 404, 409];

/**
 * Writes the file at a path of a workspace, or its next version. A long content goes to an address of its own, at most 5 GB; a `Blob`, such as a
 * file that a person chose, is read piece by piece, so it is never whole in memory. Parts that came stay for two days: a call with the same content
 * after a failure sends the rest.
 *
 * @throws HubError when the hub refuses, Unreachable when no answer comes.
 */
export async function upload(
  hub: Client, {workspace, path}: {workspace: string; path: string}, content: Blob | Uint8Array<ArrayBuffer> | string, uploading: Uploading = {},
): Promise<components['schemas']['Change']> {
  const {onProgress, signal} = uploading;
  const blob = content instanceof Blob ? content : new Blob([content]);
  const sha256 = await digest(blob, signal);
  const at = {path: {workspace_id: workspace}, signal};
  const wanted = {sha256, size: blob.size, ...(blob.size > PART ? {parts: await digests(blob, signal)} : {})};
  const {timeoutMs} = hub.within();
  const patient = {timeoutMs: timeoutMs > 0 ? timeoutMs + (blob.size / SLOWEST_READ) * 1000 : 0};
  for (let futile = 0; ;) {
    const {request, parts} = await hub.post('/api/v1/workspaces/{workspace_id}/uploads', {...at, ...patient, body: wanted});
    if (!request && !parts) {
      const made = await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {...at, query: {path}, body: blob});
      onProgress?.(blob.size, blob.size);
      return made;
    }
    if (!request) break;
    const next = parts?.next;
    const piece = next ? blob.slice(next.from, next.from + next.size) : blob;
    // A path is one of the hub, which a proxy may have below a path of its own.
    const url = request.url.startsWith('/') ? hub.whole(request.url) : request.url;
    const told = onProgress && {onProgress: (sent: number) => onProgress((parts?.received ?? 0) + sent, blob.size)};
    // A content that is there already (412) is as good.
    const accepts = (status: number) => status === 412 || (next != null && futile < 3 && LOST.includes(status));
    const {ok, body} = await hub.patiently(true, () => bounded(signal => transfer(url, request, piece, {...told, signal}), {...hub.within(), size: piece.size, signal}), {accepts, signal});
    // Nobody reads it, and until its end the request would listen to the signal.
    await body?.cancel();
    if (!parts) break;
    futile = ok ? 0 : futile + 1;
  }
  onProgress?.(blob.size, blob.size);
  return hub.put('/api/v1/workspaces/{workspace_id}/files/by-path', {...at, query: {path}, body: {sha256}});
}

async function digests(blob: Blob, signal?: AbortSignal): Promise<string[]> {
  const all: string[] = [];
  for (let at = 0; at < blob.size; at += PART) all.push(await digest(blob.slice(at, at + PART), signal));
  return all;
}

async function digest(blob: Blob, signal?: AbortSignal): Promise<string> {
  const sha256 = new Sha256();
  for await (const piece of pieces(blob)) {
    signal?.throwIfAborted();
    sha256.update(piece);
  }
  return sha256.hex();
}

const PIECE = 256 * 1024;

async function* pieces(blob: Blob): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (let at = 0; at < blob.size; at += PIECE) yield new Uint8Array(await blob.slice(at, at + PIECE).arrayBuffer());
}

/** Sends the content as it is, without a token. Browsers tell the progress of an `XMLHttpRequest` alone; elsewhere the body is counted. */
async function transfer(url: string, {method, headers}: Transfer, blob: Blob, {onProgress, signal}: Uploading): Promise<Response> {
  if (onProgress && typeof XMLHttpRequest === 'function') return byXhr(url, method, headers, blob, onProgress, signal);
  const streamed = onProgress && {body: counted(blob, onProgress), duplex: 'half', headers: {...headers, 'content-length': `${blob.size}`}};
  try {
    return await fetch(url, {method, headers, body: blob, ...streamed, ...(signal ? {signal} : {})});
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Unreachable(url, cause);
  }
}

/** The content as a stream that tells how much of it was taken. */
function counted(blob: Blob, told: (sent: number, size: number) => void): ReadableStream<Uint8Array<ArrayBuffer>> {
  const source = pieces(blob);
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      told(sent, blob.size);
      const {done, value} = await source.next();
      if (done) return controller.close();
      sent += value.length;
      controller.enqueue(value);
    },
  }, {highWaterMark: 0});
}

function byXhr(url: string, method: string, headers: Record<string, string>, blob: Blob, told: (sent: number, size: number) => void, signal?: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open(method, url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({loaded}) => told(loaded, blob.size);
    xhr.onload = () => {
      const asked = xhr.getResponseHeader('retry-after');
      resolve(new Response(xhr.responseText === '' ? null : xhr.responseText, {status: xhr.status, ...(asked === null ? {} : {headers: {'retry-after': asked}})}));
    };
    xhr.onerror = () => reject(new Unreachable(url, new TypeError('the request failed')));
    xhr.onabort = () => reject(signal?.reason);
    if (signal?.aborted) return reject(signal.reason);
    xhr.onloadend = onAbort(signal, () => xhr.abort());
    xhr.send(blob);
  });
}
