/** The hub of this page: the one client, its token, and the state of the connection. */
import {Client, HubError, Unreachable, type components} from 'buildscale';
import {QueryCache} from '@tanstack/react-query';
import {useSyncExternalStore} from 'react';
import {forget, freshToken} from './login.ts';
import {Queries} from './queries.ts';
import {local} from './storage.ts';
import {forgetPerson} from './store.ts';

export type Schemas = components['schemas'];

const TOKEN = 'buildscale.token';
const base = location.origin + location.pathname.replace(/\/[^/]*$/, '');

/** The token is kept in this browser alone, under this origin, whose policy runs no foreign script. */
export const session = {
  token: (): string | undefined => local.get(TOKEN),
  signIn: (token: string): void => {
    // The next refresh of a login at the issuer would put its token in the place of this one.
    forget();
    local.set(TOKEN, token);
  },
  signOut: (): void => {
    forget();
    forgetPerson();
    queries.clear();
  },
};

export const hub = new Client({url: base, token: freshToken});

export const queries = new Queries({
  queryCache: new QueryCache({
    // A token that has expired meanwhile: the page of the workspaces asks for another one.
    onError: (error, {queryKey}) => {
      if (isRefused(error, 'UNAUTHORIZED') && queryKey[0] !== 'workspaces') void queries.invalidateQueries({queryKey: ['workspaces']});
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: true,
      // The client itself repeats what may pass.
      retry: false,
      networkMode: 'always',
    },
    mutations: {networkMode: 'always'},
  },
});

// A person who signs out, or in, does so in all tabs of this browser: none shows what another person has read. A token that is refreshed is no such case.
addEventListener('storage', ({key, oldValue, newValue}) => {
  if (key === TOKEN && (oldValue === null) !== (newValue === null)) void queries.resetQueries();
});

/** Reads a list again now and a little later: a command is durable when it is answered, and the list follows a moment after, or later where the hub is busy. */
export function refreshSoon(queryKey: unknown[]): void {
  for (const delay of [0, 700, 3_000, 10_000, 30_000]) setTimeout(() => void queries.invalidateQueries({queryKey}), delay);
}

/** The connection as people see it. */
type Link = 'online' | 'reconnecting' | 'offline';
let link: Link = 'online';
const listeners = new Set<() => void>();

export function setLink(now: Link): void {
  link = now;
  listeners.forEach(listen => listen());
}

const shown = (): Link => navigator.onLine ? link : 'offline';

export function useLink(): Link {
  return useSyncExternalStore(listen => {
    listeners.add(listen);
    for (const name of ['online', 'offline']) addEventListener(name, listen);
    return () => {
      listeners.delete(listen);
      for (const name of ['online', 'offline']) removeEventListener(name, listen);
    };
  }, shown);
}

/** An error in words for people: what happened, and what to do. */
export function told(error: unknown): {title: string; hint: string; code: string} {
  if (error instanceof HubError) {
    const hint = error.hint ?? (error.requestId ? `The log of the hub has more under ${error.requestId}.` : '');
    return {title: error.message, hint, code: error.code};
  }
  if (error instanceof Unreachable) {
    return {title: 'The hub does not answer', hint: 'Look whether it runs, and whether this machine is online.', code: 'UNREACHABLE'};
  }
  return {title: error instanceof Error ? error.message : String(error), hint: '', code: 'ERROR'};
}

export const isRefused = (error: unknown, ...codes: string[]): boolean => error instanceof HubError && codes.includes(error.code);
