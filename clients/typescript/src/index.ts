/**
 * The client of a BuildScale hub for browsers, Node.js, Deno and Bun: only `fetch`, streams and `crypto` of the platform.
 */
export {Client, type Options} from './client.ts';
export {HubError, Unreachable, type Refusal} from './errors.ts';
export {
  ticketUrl, watchChat, watchTask, watchWorkspace,
  type ChatEvent, type Connection, type Source, type TaskEvent, type Watching, type WorkspaceEvent,
} from './stream.ts';
export {serveTools, type CodeCall, type CodeTool, type Serving} from './tools.ts';
export {WorkspaceStream, type Following} from './shared.ts';
export {upload, type Uploading} from './upload.ts';
export type {Answer, Method, PathOf, Request} from './typed.ts';
export type {components, paths} from './schema.ts';
export {Parser, type Block} from './sse.ts';
