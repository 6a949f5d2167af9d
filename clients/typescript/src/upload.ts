import type {Client} from './client.ts';
import {Unreachable} from './errors.ts';
import type {components} from './schema.ts';
import {Sha256} from './sha256.ts';

/** Settings of an upload. */
export interface Uploading {
  /** Told how many bytes have been sent, and how many there are. */
  onProgress?: (sent: number, size: number) => void;
  signal?: AbortSignal;
}

type Transfer = NonNullable<components['schemas']['Transfer']['request']>;

/**
 * Writes the file at a path of a workspace, or its next version. A long content goes to an address of its own, at most 5 GB; a `Blob`, such as a
 * file that a person chose, is read piece by piece, so it is never whole in memory.
 *
 * @throws HubError when the hub refuses, Unreachable when no answer comes.
 */
export async function upload(
  hub: Client, {workspace, path}: {workspace: string; path: string}, content: Blob | Uint8Array<ArrayBuffer> | string, uploading: Uploading = {},
): Promise<components['schemas']['Change']> {
  const {onProgress, signal} = uploading;
  const blob = content instanceof Blob ? content : new Blob([content]);
  const sha256 = await digest(blob, signal);
  const at = {path: {workspace_id: workspace}, ...(signal ? {signal} : {})};
  const {request} = await hub.post('/api/v1/workspaces/{workspace_id}/uploads', {...at, body: {sha256, size: blob.size}});
  if (!request) {
    const made = await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {...at, query: {path}, body: blob});
    onProgress?.(blob.size, blob.size);
    return made;
  }
  const url = new URL(request.url, `${hub.url}/`).href;
  // A content that is there already (412) is as good.
  await hub.patiently('put', () => transfer(url, request, blob, uploading), {accepts: status => status === 412, ...(signal ? {signal} : {})});
  onProgress?.(blob.size, blob.size);
  return hub.put('/api/v1/workspaces/{workspace_id}/files/by-path', {...at, query: {path}, body: {sha256}});
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
    const leave = () => xhr.abort();
    xhr.open(method, url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({loaded}) => told(loaded, blob.size);
    xhr.onload = () => {
      const asked = xhr.getResponseHeader('retry-after');
      resolve(new Response(xhr.responseText === '' ? null : xhr.responseText, {status: xhr.status, ...(asked === null ? {} : {headers: {'retry-after': asked}})}));
    };
    xhr.onerror = () => reject(new Unreachable(url, new TypeError('the request failed')));
    xhr.onabort = () => reject(signal?.reason);
    xhr.onloadend = () => signal?.removeEventListener('abort', leave);
    if (signal?.aborted) return reject(signal.reason);
    signal?.addEventListener('abort', leave, {once: true});
    xhr.send(blob);
  });
}
