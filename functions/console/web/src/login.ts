/**
 * Signing in at the issuer of the hub, without a secret: the authorization code flow with PKCE (RFC 7636). The tokens are kept in this browser, and
 * the access token is refreshed before it expires.
 */
import {Client} from 'buildscale';
import {local, tab} from './storage.ts';

const base = location.origin + location.pathname.replace(/\/[^/]*$/, '');
/** The address to which the issuer sends people back. Operators register it. */
const RETURN = `${base}/`;
/** How long before its end a token is replaced, in milliseconds. */
const EARLY_MS = 60_000;
const PENDING = 'buildscale.signing-in';
const LOGIN = 'buildscale.login';
const TOKEN = 'buildscale.token';

/** The way in at the issuer. */
export interface Offer {
  issuer: string;
  client: string;
  scope: string;
  audience: string | undefined;
  authorize: string;
  token: string;
  revoke: string | undefined;
}
/** A login that can be refreshed. */
interface Login {
  refresh: string;
  /** When the access token ends, in milliseconds since 1970. */
  ends: number;
  client: string;
  token: string;
  revoke?: string | undefined;
}
interface Pending {
  state: string;
  verifier: string;
  hash: string;
  offer: Offer;
}
interface Tokens {
  access_token?: string;
  refresh_token?: string;
  expires_in?: number;
  error?: string;
  error_description?: string;
}

/** The issuer at which people of this hub sign in from the page; none where the hub names none, or on a page without a secure context. */
export async function offered(): Promise<Offer | null> {
  const about = await new Client({url: base}).get('/.well-known/oauth-protected-resource');
  const [issuer] = about.authorization_servers ?? [];
  const client = about.console_client_id;
  if (!issuer || !client || !isSecureContext) return null;
  const answer = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {credentials: 'omit'});
  if (!answer.ok) throw new Error(`${issuer} does not answer: HTTP ${answer.status}`);
  const found = await answer.json() as {issuer?: string; authorization_endpoint?: string; token_endpoint?: string; revocation_endpoint?: string};
  // OpenID Connect Discovery 1.0 §4.3: to the letter.
  if (found.issuer !== issuer) throw new Error(`The configuration of ${issuer} is that of another issuer`);
  const [authorize, token] = [found.authorization_endpoint, found.token_endpoint];
  if (!authorize || !token) throw new Error(`${issuer} names no endpoints for signing in`);
  return {issuer, client, scope: (about.scopes_supported ?? []).join(' ') || 'openid', audience: about.audience ?? undefined, authorize, token, revoke: found.revocation_endpoint};
}

const random = (): string => coded(crypto.getRandomValues(new Uint8Array(32)));
const coded = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');

/** Leaves the page for the issuer, which sends the person back to `RETURN`. */
export async function begin(offer: Offer): Promise<void> {
  const pending: Pending = {state: random(), verifier: random(), hash: location.hash.startsWith('#/sign-in') ? '' : location.hash, offer};
  if (!tab.set(PENDING, JSON.stringify(pending))) {
    throw new Error('This browser blocks the storage of the page, so the page could not take the answer of the issuer. Allow it, or sign in with a token.');
  }
  const challenge = coded(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(pending.verifier))));
  const url = new URL(offer.authorize);
  const asked = {
    response_type: 'code', client_id: offer.client, redirect_uri: RETURN, scope: offer.scope, state: pending.state,
    code_challenge: challenge, code_challenge_method: 'S256', ...(offer.audience ? {audience: offer.audience} : {}),
  };
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  location.assign(url);
}

let fault: string | undefined;
/** Why the last attempt to sign in at the issuer failed. */
export const faultOfLogin = (): string | undefined => fault;

/** Takes the issuer's answer out of the address, if there is one, and exchanges its code for tokens. */
export async function finish(): Promise<void> {
  const query = new URLSearchParams(location.search);
  const kept = tab.get(PENDING);
  if (!query.has('state') || !(query.has('code') || query.has('error'))) return;
  tab.remove(PENDING);
  const pending = kept === undefined ? undefined : JSON.parse(kept) as Pending;
  history.replaceState(null, '', location.pathname);
  // The router hears of this one.
  if (pending?.hash) location.replace(pending.hash);
  try {
    // An answer to a question that this tab did not ask is somebody else's.
    if (!pending || query.get('state') !== pending.state) throw new Error('The answer of the issuer is not for this tab. Sign in once more.');
    const {offer, verifier} = pending;
    if (query.has('iss') && query.get('iss') !== offer.issuer) throw new Error('The answer is of another issuer.');
    if (query.has('error')) throw new Error(query.get('error_description') ?? `The issuer answered ${query.get('error')}`);
    const got = await ask(offer.token, {grant_type: 'authorization_code', code: query.get('code') ?? '', redirect_uri: RETURN, client_id: offer.client, code_verifier: verifier});
    keep(got, {client: offer.client, token: offer.token, revoke: offer.revoke});
  } catch (error) {
    fault = (error as Error).message;
  }
}

async function ask(url: string, fields: Record<string, string>): Promise<Tokens> {
  const answer = await fetch(url, {method: 'POST', body: new URLSearchParams(fields), credentials: 'omit'});
  const got = await answer.json().catch(() => ({})) as Tokens;
  if (answer.ok && got.access_token) return got;
  throw Object.assign(new Error(got.error_description ?? got.error ?? `The issuer answers HTTP ${answer.status}`), {isOver: got.error === 'invalid_grant'});
}

function keep({access_token: access, refresh_token: refresh, expires_in: seconds}: Tokens, login: Pick<Login, 'client' | 'token' | 'revoke'> & {refresh?: string}): void {
  local.set(TOKEN, access!);
  const next = refresh ?? login.refresh;
  if (next === undefined) return local.remove(LOGIN);
  const kept: Login = {...login, refresh: next, ends: Date.now() + (seconds ?? 300) * 1000};
  local.set(LOGIN, JSON.stringify(kept));
}

const known = (): Login | undefined => {
  const text = local.get(LOGIN);
  return text === undefined ? undefined : JSON.parse(text) as Login;
};
const isFresh = (login: Login | undefined): boolean => login === undefined || login.ends - EARLY_MS > Date.now();

let refreshing: Promise<void> | undefined;
/** The token for the next request, refreshed if it is about to end. */
export async function freshToken(): Promise<string | undefined> {
  if (!isFresh(known())) await (refreshing ??= alone(refresh).finally(() => { refreshing = undefined; }));
  return local.get(TOKEN);
}

/** One tab at a time: issuers take a refresh token once. A login that no other tab has needs no lock, which a browser that blocks storage refuses. */
async function alone(act: () => Promise<void>): Promise<void> {
  if (navigator.locks && !local.isOwn(LOGIN)) await navigator.locks.request('buildscale.refresh', act);
  else await act();
}

async function refresh(): Promise<void> {
  const login = known();
  if (login === undefined || isFresh(login)) return;
  try {
    keep(await ask(login.token, {grant_type: 'refresh_token', refresh_token: login.refresh, client_id: login.client}), login);
  } catch (error) {
    // An issuer that does not answer may do so later; one that says no has ended the login.
    if ((error as {isOver?: boolean}).isOver) forget();
  }
}

/** Ends the login here, and at the issuer where it offers that (RFC 7009). */
export function forget(): void {
  const login = known();
  local.remove(TOKEN);
  local.remove(LOGIN);
  if (login?.revoke) {
    const body = new URLSearchParams({token: login.refresh, token_type_hint: 'refresh_token', client_id: login.client});
    void fetch(login.revoke, {method: 'POST', body, credentials: 'omit', keepalive: true}).catch(() => undefined);
  }
}
