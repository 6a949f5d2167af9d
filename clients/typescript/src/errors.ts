/** The fields of the error envelope that the hub sends with each refusal. */
export interface Refusal {
  /** A stable code, for programs: `NOT_FOUND`, `STALE_VERSION`, … */
  code: string;
  message: string;
  /** The remedy, for people. */
  hint?: string;
  details?: unknown;
  request_id?: string;
}

/** The hub answered, and refused. */
export class HubError extends Error {
  override readonly name = 'HubError';
  readonly code: string;
  readonly hint: string | undefined;
  readonly details: unknown;
  readonly requestId: string | undefined;

  constructor(
    /** The HTTP status. */
    readonly status: number,
    refusal: Refusal,
    /** The time to wait before the same request, in milliseconds, where the hub names one. */
    readonly retryAfterMs?: number,
  ) {
    super(refusal.message);
    this.code = refusal.code;
    this.hint = refusal.hint;
    this.details = refusal.details;
    this.requestId = refusal.request_id;
  }

  /** Whether the same request may succeed later. */
  get isPassing(): boolean {
    return this.status === 429 || this.status >= 500;
  }
}

/** No answer came: the network, or the hub, is down. `cause` has the reason. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
  /** The address without its query, in which a ticket or a signature may be. */
  readonly url: string;

  constructor(url: string, cause: unknown) {
    const place = withoutQuery(url);
    super(`${place} cannot be reached`, {cause});
    this.url = place;
  }
}

/** The JSON of an answer that is a success, nothing where it is empty. Anything else comes from something between client and hub, such as the page of a network that asks to sign in. */
export async function jsonOf(place: () => string, answer: Response): Promise<unknown> {
  const text = await answer.text();
  if (text === '') return undefined;
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    throw new HubError(answer.status, {code: 'NO_JSON', message: `The answer of ${withoutQuery(place())} is no JSON, and not from a hub.`});
  }
  // A refusal that comes after a long answer has begun has the status of a success.
  const late = (whole as {error?: Refusal} | null)?.error;
  if (late?.code !== undefined && Object.keys(whole as object).length === 1) throw new HubError(answer.status, late);
  return whole;
}

function withoutQuery(url: string): string {
  return url.replace(/\?.*/s, '');
}

/** The header `Retry-After`, seconds or a date (RFC 9110, section 10.2.3), in milliseconds from now. */
function retryAfter(text: string | null): number | undefined {
  if (text === null || text.trim() === '') return undefined;
  const asked = /^\s*\d+\s*$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(asked) ? Math.max(0, asked) : undefined;
}

/** The error of an answer that is no success. A body that is no envelope comes from something between client and hub. */
export async function refused(answer: Response): Promise<HubError> {
  const retryAfterMs = retryAfter(answer.headers.get('retry-after'));
  const body: unknown = await answer.json().catch(() => undefined);
  const envelope = (body as {error?: Refusal} | undefined)?.error;
  // Pages are told neither the status of a redirect nor its address.
  const foreign = answer.status < 400 ? 'a redirect, and not from a hub: give the client the address to which it leads' : `HTTP ${answer.status}, and not from a hub`;
  const refusal = envelope?.code === undefined ? {code: 'NO_ENVELOPE', message: `The answer is ${foreign}.`} : envelope;
  return new HubError(answer.status, refusal, retryAfterMs);
}
