// A hub of streams alone, which says what the test wants.
import {Client} from 'buildscale';

export const url = 'http://hub.test';
export const OPENING = 'id: 7\nevent: cursor\nretry: 10\n\n';
/** The id of a chat for each number. */
export const chatOf = number => `01890000-0000-7000-8000-${String(number).padStart(12, '0')}`;
export const CHAT = chatOf(1);

export const json = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), {status, headers});
export const refusal = (code, details) => ({error: {code, message: 'no', ...(details ? {details} : {})}});

/** A stream whose pieces the test sends. It ends when its request is aborted, as those of `fetch` do. */
export function streamed(init) {
  let controller;
  const body = new ReadableStream({start: given => { controller = given; }});
  init.signal?.addEventListener('abort', () => controller.error(init.signal.reason));
  return {
    answer: new Response(body, {headers: {'content-type': 'text/event-stream'}}),
    push: bytes => controller.enqueue(bytes),
    send: text => controller.enqueue(new TextEncoder().encode(text)),
    end: () => controller.close(),
    fail: () => controller.error(new TypeError('the connection broke')),
    left: new Promise(resolve => init.signal?.addEventListener('abort', resolve)),
  };
}

/** `opened` waits for a connection; `answers` has what the hub says instead of a stream to some of them, by their number. */
export function streaming(answers = {}, options = {}) {
  const streams = [];
  const waiting = [];
  const hub = new Client({url, patienceMs: 0, ...options, fetch: async (at, init) => {
    const number = streams.length;
    const stream = {...streamed(init), actors: new URL(at).searchParams.get('actors'), last: init.headers.get('last-event-id')};
    streams.push(stream);
    waiting.splice(0).forEach(wake => wake());
    return await answers[number]?.() ?? stream.answer;
  }});
  const opened = async at => {
    while (streams.length <= at) await new Promise(wake => { waiting.push(wake); });
    return streams[at];
  };
  return {hub, opened, streams};
}

/** Events of a chat in the stream of its workspace. */
export const events = (...ids) => ids.map(id => `id: 7\nevent: chat_event\ndata: {"chat_id":"${CHAT}","id":${id},"event":"chunk","data":{}}\n\n`).join('');
export const begins = after => `${OPENING}id: 7\nevent: chat_event\ndata: {"chat_id":"${CHAT}","id":${after},"event":"cursor"}\n\n`;
export async function ids(reader, count) {
  const read = [];
  while (read.length < count) read.push((await reader.next()).value.id);
  return read;
}
