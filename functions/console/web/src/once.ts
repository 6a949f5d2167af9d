import {useRef} from 'react';
import {uuid} from '../../../../clients/typescript/src/pause.ts';

/**
 * Sends a command under an idempotency key. The same command that is given again after a failure has the key of its first try: that one may have arrived,
 * and only its answer been lost, so the hub carries both out once. `body` is all that the command consists of.
 */
export function useOnce(): <T>(body: unknown, send: (idempotencyKey: string) => Promise<T>) => Promise<T> {
  const tried = useRef<{text: string; key: string}>(undefined);
  return async (body, send) => {
    const text = JSON.stringify(body);
    const {key} = tried.current = tried.current?.text === text ? tried.current : {text, key: uuid()};
    const made = await send(key);
    tried.current = undefined;
    return made;
  };
}
