import type {Client} from './client.ts';
import {HubError, type Unreachable} from './errors.ts';
import {passes, pause, rest, uuid} from './pause.ts';
import {watchWorkspace, type Connection} from './stream.ts';

const CHATS = '/api/v1/workspaces/{workspace_id}/chats';
const CHAT = `${CHATS}/{chat_id}` as const;
const CALL = `${CHAT}/calls/{call_id}` as const;
const CONTENT = '/api/v1/workspaces/{workspace_id}/files/by-path/content';
const PREFIX = 'code__';
/** The refusals of a result, by their status: another one may be taken. */
const UNFIT = [400, 413, 422];

/** A function that agents of a workspace call. */
export interface CodeTool {
  /** Its purpose, for the model. */
  description: string;
  /** The JSON Schema of its arguments, an object; without it there are none. */
  parameters?: Record<string, unknown> | undefined;
  /** `write`, the default: each call is run at most once. `read`: a call changes nothing, and may be run by several programs. */
  effects?: 'read' | 'write' | undefined;
  /** How long a call waits for a program, in seconds: 1 to 86,400, an hour by default. Then it fails. */
  timeoutS?: number | undefined;
  /** Runs a call. The result is what the agent reads: a text, or any value as JSON. The agent reads an error that it throws as a failure. */
  run(args: any, call: CodeCall): unknown;
}

/** The call that is run. */
export interface CodeCall {
  workspace: string;
  chat: string;
  call: string;
  /** Aborts with the signal of {@link serveTools}. */
  signal: AbortSignal | undefined;
}

/** Settings of {@link serveTools}. */
export interface Serving {
  /** Ends the serving. Calls that run are not answered then. */
  signal?: AbortSignal | undefined;
  /** Told of each change of the connection. */
  onConnection?: ((connection: Connection) => void) | undefined;
  /** Told of calls that could not be taken or answered. */
  onError?: ((error: unknown) => void) | undefined;
}

interface Waiting {
  call_id: string;
  tool: string;
  args: unknown;
  repeatable: boolean;
}

/**
 * Offers functions to the agents of a workspace, as `code__NAME`, and runs their calls until `signal` aborts. The declarations are files of the workspace
 * in `/system/tools`, and stay when the program goes: calls then wait for the next one.
 *
 * @throws HubError when the hub refuses for good, for example because you may not write the declarations.
 */
export async function serveTools(hub: Client, workspace: string, tools: Record<string, CodeTool>, serving: Serving = {}): Promise<void> {
  const {signal, onConnection} = serving;
  for (const [name, tool] of Object.entries(tools)) await declared(hub, workspace, name, tool, serving);
  const program = new Program(hub, workspace, tools, serving);
  let isFirst = true;
  const told = (connection: Connection) => {
    onConnection?.(connection);
    // From here on the stream tells of each chat that waits. Those that wait already are on the list.
    if (connection.state === 'open' && isFirst) void program.lookAtAll();
    if (connection.state === 'open') isFirst = false;
  };
  for await (const {event, data} of watchWorkspace(hub, workspace, {onConnection: told, signal})) {
    if (event === 'reset') void program.lookAtAll();
    if (event === 'chat_updated' && data.handed_out) void program.look(data.chat_id);
  }
}

/** The declaration of a tool is there. A hub that is away is waited for, as by the stream. */
async function declared(hub: Client, workspace: string, name: string, tool: CodeTool, {signal, onError}: Serving): Promise<void> {
  for (let failures = 0; !signal?.aborted; failures++) {
    try {
      return await declare(hub, workspace, name, tool);
    } catch (error) {
      if (!mayPass(failures, error)) throw error;
      onError?.(error);
      await pause(rest(failures, error), signal);
    }
  }
}

/** Writes the declaration of a tool, unless it is there. */
async function declare(hub: Client, workspace: string, name: string, tool: CodeTool): Promise<void> {
  const {description, parameters, effects = 'write', timeoutS} = tool;
  const declared = {code: true, description, effects, ...(parameters ? {parameters} : {}), ...(timeoutS ? {timeout_s: timeoutS} : {})};
  const body = `${JSON.stringify(declared, undefined, 2)}\n`;
  const at = {path: {workspace_id: workspace}, query: {path: `/system/tools/${name}.json`}};
  const kept = await hub.read(CONTENT, at).then(answer => answer.text(), error => {
    if (error instanceof HubError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  if (kept !== body) await hub.put(CONTENT, {...at, body: new TextEncoder().encode(body)});
}

class Program {
  /** A program takes a call under an id of its own: no other one gets it then. */
  readonly #id = uuid();
  /** The calls that this program has begun, without those that ended long ago. */
  readonly #begun = new Set<string>();
  readonly #ended: string[] = [];

  constructor(readonly hub: Client, readonly workspace: string, readonly tools: Record<string, CodeTool>, readonly serving: Serving) {}

  async lookAtAll(): Promise<void> {
    await this.#tried(async () => {
      for await (const chat of this.hub.all(CHATS, {path: {workspace_id: this.workspace}, query: {limit: 200}})) this.#take(chat.chat_id, chat.waiting_for);
    });
  }

  async look(chat: string): Promise<void> {
    await this.#tried(async () => {
      const {waiting_for} = await this.hub.get(CHAT, {path: {workspace_id: this.workspace, chat_id: chat}, query: {limit: 1}});
      this.#take(chat, waiting_for);
    });
  }

  #take(chat: string, waiting: readonly Record<string, unknown>[] = []): void {
    for (const {event, data} of waiting) {
      const call = data as Waiting;
      const tool = event === 'call_handed_out' && call.tool.startsWith(PREFIX) ? this.tools[call.tool.slice(PREFIX.length)] : undefined;
      if (!tool || this.#begun.has(call.call_id)) continue;
      this.#begun.add(call.call_id);
      void this.#serve(chat, call, tool);
    }
  }

  async #serve(chat: string, call: Waiting, tool: CodeTool): Promise<void> {
    let isOurs = call.repeatable;
    const take = async () => { isOurs = await this.#isTaken(chat, call); };
    // Nothing of the call has begun: the next look tries it again.
    if (!isOurs && !(await this.#tried(take))) {
      this.#begun.delete(call.call_id);
      return;
    }
    if (isOurs) await this.#tried(() => this.#run(chat, call, tool));
    if (this.#ended.push(call.call_id) > REMEMBERED) this.#begun.delete(this.#ended.shift()!);
  }

  /** Takes a call; false when another program has it, or when it has ended. */
  async #isTaken(chat: string, call: Waiting): Promise<boolean> {
    const path = {workspace_id: this.workspace, chat_id: chat, call_id: call.call_id};
    try {
      await this.hub.post(`${CALL}/take`, {path, body: {program: this.#id}});
      return true;
    } catch (error) {
      if (error instanceof HubError && error.code === 'CONFLICT') return false;
      throw error;
    }
  }

  async #run(chat: string, call: Waiting, tool: CodeTool): Promise<void> {
    const path = {workspace_id: this.workspace, chat_id: chat, call_id: call.call_id};
    const {signal} = this.serving;
    let body: {output: unknown; is_error: boolean};
    try {
      const output = await tool.run(call.args, {workspace: this.workspace, chat, call: call.call_id, signal});
      body = {output: output ?? null, is_error: false};
    } catch (error) {
      body = {output: error instanceof Error ? error.message : String(error), is_error: true};
    }
    let idempotencyKey = uuid();
    let isReplaced = false;
    for (let failures = 0; !signal?.aborted; failures++) {
      try {
        await this.hub.post(CALL, {path, body, idempotencyKey});
        return;
      } catch (error) {
        // The call was stopped, or its time was up.
        if (error instanceof HubError && error.code === 'CONFLICT') return;
        if (passes(error)) {
          await pause(rest(failures, error), signal);
          continue;
        }
        if (isReplaced || (error instanceof HubError && !UNFIT.includes(error.status))) throw error;
        // A result that is no JSON, or too long: without an answer the agent would wait until the time of the call is up.
        this.serving.onError?.(error);
        body = {output: `The result cannot be sent: ${error instanceof Error ? error.message : String(error)}`, is_error: true};
        [idempotencyKey, isReplaced] = [uuid(), true];
      }
    }
  }

  /** The stream tells of a call once, so what fails for a while is tried until it works: nothing else would look again. False when it did not work. */
  async #tried(attempt: () => Promise<void>): Promise<boolean> {
    const {signal} = this.serving;
    for (let failures = 0; !signal?.aborted; failures++) {
      try {
        await attempt();
        return true;
      } catch (error) {
        if (signal?.aborted) return false;
        this.serving.onError?.(error);
        if (!mayPass(failures, error)) return false;
        await pause(rest(failures, error), signal);
      }
    }
    return false;
  }
}

/** Whether the same request is worth sending again. A fault of the hub itself may stay, as for a chat that is damaged. */
function mayPass(failures: number, error: unknown): error is Unreachable | HubError {
  return passes(error) && !(error instanceof HubError && error.status === 500 && failures >= FAULTS);
}

/** Calls that have ended and that a look which began before may still find. */
const REMEMBERED = 1_000;
/** How often a request is sent again that the hub answers with 500. */
const FAULTS = 5;
