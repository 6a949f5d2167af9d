/**
 * The fold of a chat: its history and its events into the rows of the transcript. Pure, and one for both, so that a reload shows the same.
 * Each row has the id of its fact. An event that comes again changes nothing, so history and stream may overlap.
 */
import {jsonOrText} from '../json.ts';
import type {components} from '../schema.ts';
import type {ChatEvent} from '../stream.ts';

type Schemas = components['schemas'];
export type HistoryMessage = Schemas['Message'];
export type Question = Schemas['Question'];
export type DataOf<E extends ChatEvent['event']> = Extract<ChatEvent, {event: E}>['data'];

export interface Plan {
  path: string;
  id?: string | null;
  steps: {title: string; status: string}[];
}
export type Row =
  /** `author` is the id of the person who wrote it, where that is known. */
  | {kind: 'user'; id: string; seq: number; text: string; files: readonly string[]; author?: string}
  | {kind: 'assistant'; id: string; text: string; thought: string; complete: boolean}
  | {kind: 'call'; id: string; tool: string; args: unknown; path?: string; output?: string; live?: string; success?: boolean; code?: string; truncated?: boolean; asks?: boolean; resources?: DataOf<'observation'>['resources']}
  /** One that is not open was `answered`, or closed by its time or by a stop. */
  | {kind: 'question'; id: string; call: string; questions: readonly Question[]; open: boolean; answered?: boolean; expires: string}
  | {kind: 'permission'; id: string; call: string; tool: string; args: unknown; category: string; reason: string; always?: Schemas['PermissionRule']; expires: string; digest?: string; options?: DataOf<'permission_required'>['options']; outcome?: string; by?: string; why?: string}
  | {kind: 'notice'; id: string; tone: 'info' | 'error'; text: string; hint?: string}
  | {kind: 'end'; id: string; reason: string; files: readonly ChangedFile[]; usage: Usage};
export interface ChangedFile {
  path: string;
  id: string;
  v: number;
}
export interface Usage {
  input: number;
  output: number;
  cached: number;
  cost: number;
  contextUsed: number;
  contextLimit: number;
}
export interface Transcript {
  rows: readonly Row[];
  /** The turn that runs, as far as the events told. */
  turn: string | undefined;
  /** The reason for a wait that no person ends: slots, a machine, a provider. */
  waiting: string | undefined;
  plan: Plan | undefined;
  mode: string | undefined;
  /** The files that the running turn changed, the latest version of each. */
  files: readonly ChangedFile[];
  /** The usage of the running turn. */
  usage: Usage;
  paused: string | undefined;
}

const NO_USAGE: Usage = {input: 0, output: 0, cached: 0, cost: 0, contextUsed: 0, contextLimit: 0};
export const EMPTY: Transcript = {
  rows: [], turn: undefined, waiting: undefined, plan: undefined, mode: undefined, files: [], usage: NO_USAGE, paused: undefined,
};

/** An open request for permission. */
export function permissionRow({permission_id, call_id, tool, args, category, reason, always, expires_at, digest, options}: DataOf<'permission_required'>): Extract<Row, {kind: 'permission'}> {
  return {kind: 'permission', id: `p:${permission_id}`, call: call_id, tool, args, category, reason, expires: expires_at, ...(always ? {always} : {}), ...(digest ? {digest} : {}), ...(options ? {options} : {})};
}

export function questionRow({question_id, call_id, questions, expires_at}: DataOf<'question'>, open: boolean): Extract<Row, {kind: 'question'}> {
  return {kind: 'question', id: `q:${question_id}`, call: call_id, questions, open, expires: expires_at};
}

/** A page of history as rows, oldest first. */
export function rowsOf(messages: readonly HistoryMessage[]): Row[] {
  const rows: Row[] = [];
  const calls = new Map<string, number>();
  for (const message of messages) {
    if (message.role === 'user') {
      rows.push({kind: 'user', id: `m:${message.id}`, seq: message.seq, text: message.content ?? '', files: message.files ?? [], ...(message.user_id ? {author: message.user_id} : {})});
    } else if (message.role === 'assistant') {
      const [text, thought] = [message.content ?? '', message.reasoning ?? ''];
      if (text + thought !== '') rows.push({kind: 'assistant', id: `m:${message.id}`, text, thought, complete: true});
      for (const call of message.calls ?? []) {
        calls.set(call.call_id, rows.length);
        rows.push({kind: 'call', id: `c:${call.call_id}`, tool: call.tool, args: parsed(call.args)});
      }
    } else if (message.role === 'tool') {
      const at = calls.get(message.call_id ?? '');
      const row = at === undefined ? undefined : rows[at];
      const answer = {output: message.output ?? '', success: message.success ?? true};
      if (row?.kind === 'call') rows[at!] = {...row, ...answer};
      else rows.push({kind: 'call', id: `c:${message.call_id}`, tool: message.tool ?? '', args: {}, ...answer});
    }
  }
  return rows;
}

const parsed = (value: unknown): unknown => typeof value === 'string' ? jsonOrText(value) : value;

/** Puts an older page before the rows that are there. */
export function prepend(state: Transcript, older: readonly Row[]): Transcript {
  const known = new Set(state.rows.map(row => row.id));
  return {...state, rows: [...older.filter(row => !known.has(row.id)), ...state.rows]};
}

/** A transcript that is folded into: rows are replaced, never changed, so that what did not change is not drawn again. */
export class Folding {
  #rows: Row[];
  #at: Map<string, number>;
  #state: Omit<Transcript, 'rows'>;
  #ahead: number;

  /** `ahead` counts the last rows that the history has, and of which no event has told yet. A row that the history lacks is put before them. */
  constructor(state: Transcript, ahead = 0) {
    const {rows, ...rest} = state;
    this.#ahead = ahead;
    this.#rows = [...rows];
    this.#at = new Map(rows.map((row, at) => [row.id, at]));
    this.#state = rest;
  }

  done(): Transcript {
    return {...this.#state, rows: this.#rows};
  }

  /** How many of the last rows no event has told of. */
  get ahead(): number {
    return this.#ahead;
  }

  /** The next events are newer than the history that was read. */
  leave(): void {
    this.#ahead = 0;
  }

  add(event: ChatEvent): void {
    switch (event.event) {
      case 'turn_started': return this.#begin(event.data);
      case 'thought': return this.#piece(event.data, 'thought');
      case 'chunk': return this.#piece(event.data, 'text');
      case 'message': return this.#message(event.data, event.id);
      case 'call': return this.#call(event.data);
      case 'observation': return this.#observe(event.data);
      case 'agent_update': return this.#hear(event.data);
      case 'file_updated': return this.#file(event.data);
      case 'plan_step': return this.#step(event.data);
      case 'permission_required': return this.#ask(event.data);
      case 'permission_resolved': return this.#resolve(event.data);
      case 'question': return this.#question(event.data);
      case 'mode_changed':
        this.#state.mode = event.data.mode;
        return;
      case 'plan_approved':
        this.#state.mode = 'build';
        return this.#notice(event.id, 'info', `The plan was approved, version ${event.data.v}.`);
      case 'waiting':
        this.#state.waiting = waitingFor(event.data);
        return;
      case 'call_handed_out':
        this.#state.waiting = `It waits for the program that runs ${event.data.tool}.`;
        return;
      case 'usage': return this.#use(event.data);
      case 'done': return this.#end(event.data.turn_id, event.data.stop_reason);
      case 'stopped': return this.#end(event.data.turn_id, event.data.reason);
      case 'error':
        if (event.data.code === 'PAUSED') this.#state.paused = event.data.message;
        return this.#notice(event.id, 'error', event.data.message, event.data.hint ?? undefined);
      default: return;
    }
  }

  #get<K extends Row['kind']>(kind: K, id: string): Extract<Row, {kind: K}> | undefined {
    const at = this.#at.get(id);
    const row = at === undefined ? undefined : this.#rows[at];
    return row?.kind === kind ? (row as Extract<Row, {kind: K}>) : undefined;
  }

  #put(row: Row): void {
    const at = this.#at.get(row.id);
    if (at !== undefined) {
      this.#rows[at] = row;
      this.#reach(row.id);
      return;
    }
    const place = this.#rows.length - this.#ahead;
    this.#rows.splice(place, 0, row);
    for (let at = place; at < this.#rows.length; at++) this.#at.set(this.#rows[at]!.id, at);
  }

  /** An event tells of a row. This row, and those before it, are not ahead of the events any more. */
  #reach(id: string): void {
    const at = this.#at.get(id);
    if (at !== undefined) this.#ahead = Math.min(this.#ahead, this.#rows.length - at - 1);
  }

  #begin({turn_id, attempt}: DataOf<'turn_started'>): void {
    const again = this.#state.turn === turn_id;
    Object.assign(this.#state, {turn: turn_id, waiting: undefined, paused: undefined}, again ? {} : {files: [], usage: NO_USAGE});
    if (attempt === 1) return;
    // Pieces of text without their message are void after a crash.
    this.#rows = this.#rows.filter(row => row.kind !== 'assistant' || row.complete);
    this.#at = new Map(this.#rows.map((row, at) => [row.id, at]));
    this.#put({kind: 'notice', id: `r:${turn_id}:${attempt}`, tone: 'info', text: 'The turn goes on after an interruption. Nothing that was finished is repeated.'});
  }

  #piece({message_id, text}: DataOf<'chunk'>, field: 'text' | 'thought'): void {
    const id = `m:${message_id}`;
    const row = this.#get('assistant', id) ?? {kind: 'assistant' as const, id, text: '', thought: '', complete: false};
    this.#state.waiting = undefined;
    if (!row.complete) this.#put({...row, [field]: row[field] + text});
  }

  #message({message_id, role, content, files, user_id}: DataOf<'message'>, seq: number): void {
    const id = `m:${message_id}`;
    if (role === 'user') this.#put({kind: 'user', id, seq, text: content, files: files ?? [], ...(user_id ? {author: user_id} : {})});
    if (role !== 'assistant') return;
    const thought = this.#get('assistant', id)?.thought ?? '';
    // A message that is nothing but calls has no row: its calls have.
    if (content + thought !== '') this.#put({kind: 'assistant', id, text: content, thought, complete: true});
  }

  #call({call_id, tool, args, path}: DataOf<'call'>): void {
    const id = `c:${call_id}`;
    const known = this.#get('call', id);
    this.#state.waiting = undefined;
    if (known?.output === undefined) this.#put({kind: 'call', id, tool, args, ...(path ? {path} : {})});
    // The history has no path.
    else this.#put(path ? {...known, path} : known);
  }

  #observe(data: DataOf<'observation'>): void {
    const id = `c:${data.call_id}`;
    this.#state.waiting = undefined;
    const row = this.#get('call', id) ?? {kind: 'call' as const, id, tool: data.tool, args: {}};
    this.#put({
      ...row, output: data.output, success: data.success,
      ...(data.code ? {code: data.code} : {}), ...(data.truncated ? {truncated: true} : {}), ...(data.resources ? {resources: data.resources} : {}),
    });
    this.#rows.forEach((other, at) => {
      if (other.kind === 'question' && other.call === data.call_id && other.open) this.#rows[at] = {...other, open: false, answered: data.success};
    });
  }

  /**
   * The end of the output of a command that runs, or the words of a server: each takes the place of the last. A call that begins after its wait
   * tells of itself without words.
   */
  #hear({call_id, update}: DataOf<'agent_update'>): void {
    const row = call_id ? this.#get('call', `c:${call_id}`) : undefined;
    if (row) this.#state.waiting = undefined;
    const live = wordsOf(update);
    if (row && row.output === undefined && live !== '') this.#put({...row, live});
  }

  #file({path, v, file_id}: DataOf<'file_updated'>): void {
    this.#state.files = [...this.#state.files.filter(file => file.id !== file_id), {path, v, id: file_id}];
  }

  #step({step, status, title, total, plan_path, plan_id}: DataOf<'plan_step'>): void {
    const known = this.#state.plan?.path === plan_path ? this.#state.plan.steps : [];
    const steps = Array.from({length: total}, (_, at) => known[at] ?? {title: `Step ${at + 1}`, status: 'pending'});
    steps[step - 1] = {title, status};
    this.#state.plan = {path: plan_path, id: plan_id ?? null, steps};
  }

  #ask(data: DataOf<'permission_required'>): void {
    const row = permissionRow(data);
    if (this.#get('permission', row.id)?.outcome !== undefined) return;
    this.#put(row);
    const waits = this.#get('call', `c:${data.call_id}`);
    if (waits && waits.output === undefined) this.#put({...waits, asks: true});
  }

  #resolve({permission_id, outcome, by, reason}: DataOf<'permission_resolved'>): void {
    const row = this.#get('permission', `p:${permission_id}`);
    if (!row) return;
    this.#put({...row, outcome, by, ...(reason ? {why: reason} : {})});
    const waited = this.#get('call', `c:${row.call}`);
    if (waited) this.#put({...waited, asks: false});
  }

  #question(data: DataOf<'question'>): void {
    const call = this.#get('call', `c:${data.call_id}`);
    const isOpen = call?.output === undefined;
    this.#put({...questionRow(data, isOpen), ...(isOpen ? {} : {answered: call.success === true})});
  }

  #use(data: DataOf<'usage'>): void {
    const {input, output, cached, cost} = this.#state.usage;
    this.#state.usage = {
      input: input + data.input_tokens, output: output + data.output_tokens, cached: cached + data.cached_tokens, cost: cost + data.cost_usd,
      contextUsed: data.context_used, contextLimit: data.context_limit,
    };
  }

  #end(turn: string, reason: string): void {
    const {files, usage} = this.#state;
    // No event will tell of a call that never began. The history that was read ends with this turn, so the call stays before its end.
    this.#ahead = 0;
    this.#put({kind: 'end', id: `t:${turn}`, reason, files, usage});
    this.#rows.forEach((row, at) => {
      if (row.kind === 'question' && row.open) this.#rows[at] = {...row, open: false};
      if (row.kind === 'assistant' && !row.complete) this.#rows[at] = {...row, complete: true};
    });
    Object.assign(this.#state, {turn: undefined, waiting: undefined, files: []});
  }

  #notice(seq: number, tone: 'info' | 'error', text: string, hint?: string): void {
    this.#put({kind: 'notice', id: `n:${seq}`, tone, text, ...(hint ? {hint} : {})});
  }
}

/** The text of an update of the Agent Client Protocol. */
function wordsOf(update: unknown): string {
  const content = (update as {content?: unknown} | null)?.content;
  if (!Array.isArray(content)) return '';
  return content.map(one => (one as {content?: {text?: unknown}} | null)?.content?.text).filter(text => typeof text === 'string').join('\n');
}

function waitingFor(data: DataOf<'waiting'>): string {
  const reasons: Record<string, string> = {
    slots: 'Waits for a free slot of the model',
    sandbox: 'Waits for the sandbox',
    place: 'Waits for a place among the commands',
    model: 'The provider failed; it is asked again',
  };
  return reasons[data.reason] ?? 'Waits';
}
