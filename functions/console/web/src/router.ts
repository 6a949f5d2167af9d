/** Places of the console are in the fragment of the address: so the hub needs no route for them, and a proxy may put it below any path. */
import {useSyncExternalStore} from 'react';

export interface Place {
  workspace?: string;
  page: string;
  /** The rest of the path: an id, or a path of a file. */
  rest: string[];
  query: URLSearchParams;
}

function read(): Place {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(part => part !== '').map(decoded);
  const query = new URLSearchParams(search);
  if (parts[0] !== 'w' || parts[1] === undefined) return {page: parts[0] ?? '', rest: parts.slice(1), query};
  return {workspace: parts[1], page: parts[2] ?? 'chats', rest: parts.slice(3), query};
}

/** A part of an address that a person typed may have a percent sign that encodes nothing: it stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

let current = read();
const listeners = new Set<() => void>();
addEventListener('hashchange', () => {
  current = read();
  listeners.forEach(listen => listen());
});

export function usePlace(): Place {
  return useSyncExternalStore(listen => {
    listeners.add(listen);
    return () => listeners.delete(listen);
  }, () => current);
}

/** The address of a place of a workspace. */
export function href(workspace: string, page: string, rest: string[] = [], query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined)).toString();
  const path = ['w', workspace, page, ...rest].map(encodeURIComponent).join('/');
  return `#/${path}${search === '' ? '' : `?${search}`}`;
}

export function go(to: string): void {
  location.hash = to.replace(/^#/, '');
}

/** Goes to a place that takes the present one out of the history. */
export function instead(to: string): void {
  location.replace(to);
}

/** A choice of the thing that a place shows, such as a version of a file. It is in the address, so that a link and a reload have it. */
export function useChoice(name: string): [chosen: string | undefined, choose: (value: string | undefined) => void] {
  const chosen = usePlace().query.get(name) ?? undefined;
  const [place] = location.hash.split('?');
  return [chosen, value => {
    const [path = '', search = ''] = location.hash.split('?');
    // An answer that comes when the person has gone on changes nothing on the next page.
    if (path !== place) return;
    const query = new URLSearchParams(search);
    if (value === undefined) query.delete(name);
    else query.set(name, value);
    instead([path, query.toString()].filter(Boolean).join('?'));
  }];
}

/** A file's path as the rest of a place, and back. */
export const partsOf = (path: string): string[] => path.split('/').filter(part => part !== '');
export const pathOf = (rest: string[]): string => `/${rest.join('/')}`;
