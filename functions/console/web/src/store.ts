/** The memory of this browser: drafts, the theme, the last workspace. */
import {useState, useSyncExternalStore} from 'react';

const listeners = new Set<() => void>();

export function remember(key: string, value: string | undefined): void {
  try {
    if (value === undefined || value === '') localStorage.removeItem(`buildscale.${key}`);
    else localStorage.setItem(`buildscale.${key}`, value);
  } catch {
    // A browser without storage, or a full one: the page works, and forgets.
  }
  listeners.forEach(listen => listen());
}
export const remembered = (key: string): string | undefined => localStorage.getItem(`buildscale.${key}`) ?? undefined;

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
