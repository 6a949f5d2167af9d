/** The storage of this browser. Where the browser blocks it, or it is full, the page remembers by itself until it is left. */
class Memory {
  /** Values that the browser did not take. They are newer than those that it has. */
  readonly #own = new Map<string, string>();
  readonly #storage: () => Storage;

  /** `storage` is asked for each time: a browser that blocks it throws. */
  constructor(storage: () => Storage) {
    this.#storage = storage;
  }

  get(key: string): string | undefined {
    return this.#own.get(key) ?? this.#in(storage => storage.getItem(key)) ?? undefined;
  }

  /** Keeps a value, and says whether a reload finds it. */
  set(key: string, value: string): boolean {
    const isKept = this.#in(storage => { storage.setItem(key, value); return true; }) ?? false;
    if (isKept) this.#own.delete(key);
    else this.#own.set(key, value);
    return isKept;
  }

  remove(key: string): void {
    this.#own.delete(key);
    this.#in(storage => storage.removeItem(key));
  }

  /** Removes the values whose keys are meant. */
  removeAll(isMeant: (key: string) => boolean): void {
    const kept = this.#in(storage => Array.from({length: storage.length}, (_, at) => storage.key(at) ?? '')) ?? [];
    [...kept, ...this.#own.keys()].filter(isMeant).forEach(key => this.remove(key));
  }

  /** Whether a value is in this page alone: no reload and no other tab finds it. */
  isOwn(key: string): boolean {
    return this.#own.has(key);
  }

  /** What `act` gives; undefined where the browser refuses it. */
  #in<T>(act: (storage: Storage) => T): T | undefined {
    try {
      return act(this.#storage());
    } catch {
      return undefined;
    }
  }
}

/** For all tabs of this browser. */
export const local = new Memory(() => localStorage);
/** For this tab. */
export const tab = new Memory(() => sessionStorage);
