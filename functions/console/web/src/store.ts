/** The memory of this browser: drafts, the theme, the last workspace, and what a tab shows. */
import {useEffect, useId, useState, useSyncExternalStore} from 'react';
import {local, tab} from './storage.ts';

const listeners = new Set<() => void>();

/** What a reload would lose. While there is any of it, the browser asks before it leaves the page. */
const atRisk = new Set<string>();
const ask = (event: BeforeUnloadEvent): void => event.preventDefault();

function setAtRisk(what: string, isAtRisk: boolean): void {
  if (isAtRisk) atRisk.add(what);
  else atRisk.delete(what);
  if (atRisk.size > 0) addEventListener('beforeunload', ask);
  else removeEventListener('beforeunload', ask);
}

/** Has the browser ask before a reload while this is so: for what no draft can keep. */
export function useAtRisk(isAtRisk: boolean): void {
  const id = useId();
  useEffect(() => {
    setAtRisk(id, isAtRisk);
    return () => setAtRisk(id, false);
  }, [id, isAtRisk]);
}

export function remember(key: string, value: string | undefined): void {
  const isGone = value === undefined || value === '';
  if (isGone) local.remove(`buildscale.${key}`);
  const isKept = isGone || local.set(`buildscale.${key}`, value);
  if (key.startsWith('draft.')) setAtRisk(key, !isKept);
  listeners.forEach(listen => listen());
}
export const remembered = (key: string): string | undefined => local.get(`buildscale.${key}`);

/** Forgets what is of the person who leaves: their drafts, the output of their commands, and what they looked at. The theme is the machine's. */
export function forgetPerson(): void {
  const isOfPerson = (key: string) => key.startsWith('buildscale.') && key !== 'buildscale.theme';
  local.removeAll(isOfPerson);
  tab.removeAll(isOfPerson);
  [...atRisk].filter(what => what.startsWith('draft.')).forEach(what => setAtRisk(what, false));
  listeners.forEach(listen => listen());
}

export function useRemembered(key: string): [string | undefined, (value: string | undefined) => void] {
  const value = useSyncExternalStore(listen => {
    listeners.add(listen);
    addEventListener('storage', listen);
    return () => {
      listeners.delete(listen);
      removeEventListener('storage', listen);
    };
  }, () => remembered(key));
  return [value, next => remember(key, next)];
}

/** A choice of what is shown, such as a fold that is open. It survives a reload of its tab, and ends with the part of the page that has it. */
export function useView<T>(key: string, initial: T): [T, (value: T) => void] {
  const name = `buildscale.view.${key}`;
  const [kept, keep] = useState<{name: string; value: T}>(() => ({name, value: viewed<T>(name) ?? initial}));
  const value = kept.name === name ? kept.value : viewed<T>(name) ?? initial;
  useEffect(() => {
    if (value === undefined) return;
    tab.set(name, JSON.stringify(value));
    // A reload runs no cleanup.
    return () => tab.remove(name);
  }, [name, value]);
  return [value, next => keep({name, value: next})];
}

function viewed<T>(name: string): T | undefined {
  try {
    const text = tab.get(name);
    return text === undefined ? undefined : JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

/** A text that survives a reload: each change is kept at once. */
export function useDraft(key: string): [string, (text: string) => void] {
  const [kept, setKept] = useState<{key: string; text: string}>({key, text: remembered(`draft.${key}`) ?? ''});
  const text = kept.key === key ? kept.text : remembered(`draft.${key}`) ?? '';
  return [text, next => {
    remember(`draft.${key}`, next);
    setKept({key, text: next});
  }];
}

/** The fields of a form as a draft, the change of some of them, and the end of the draft. Fields that were not touched follow `initial`. */
export function useFields<T extends object>(key: string, initial: T): [fields: T, change: (some: Partial<T>) => void, clear: () => void] {
  const [draft, setDraft] = useDraft(key);
  const touched: Partial<T> = draft === '' ? {} : JSON.parse(draft);
  return [{...initial, ...touched}, some => setDraft(JSON.stringify({...touched, ...some})), () => setDraft('')];
}

export type Theme = 'system' | 'light' | 'dark';
export function applyTheme(theme: string | undefined): void {
  document.documentElement.dataset.theme = theme === 'light' || theme === 'dark' ? theme : 'system';
}
