/** The title of the page, as tabs, the history and bookmarks have it. */
import {useEffect} from 'react';

/** The title of the place, and before it the name of the thing that the place shows. */
const parts = {place: '', thing: undefined as string | undefined};

function put(some: Partial<typeof parts>): void {
  Object.assign(parts, some);
  document.title = [parts.thing, parts.place].filter(Boolean).join(' · ');
}

export function useTitleOfPlace(place: string): void {
  useEffect(() => put({place}), [place]);
}

/** Names a thing, such as a chat or a file, for as long as it is shown. */
export function useTitle(thing: string | undefined): void {
  useEffect(() => {
    put({thing});
    return () => put({thing: undefined});
  }, [thing]);
}
