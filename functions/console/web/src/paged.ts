/** Lists that are read page by page. */
import {useInfiniteQuery, type InfiniteData} from '@tanstack/react-query';
import {useEffect, useState} from 'react';

/**
 * A list of which some pages were read. `read` is given the cursor of a page; the first one has none. `again` is given the items that are there, and tells
 * after how many milliseconds they are read again.
 */
export function usePages<Page extends {next_cursor?: string | null}, Item>({queryKey, read, itemsOf, again}: {
  queryKey: unknown[];
  read: (cursor: {cursor?: string}, signal: AbortSignal) => Promise<Page>;
  itemsOf: (page: Page) => readonly Item[];
  again?: (items: Item[]) => number | false;
}) {
  const all = (data: InfiniteData<Page, unknown> | undefined) => data?.pages.flatMap(itemsOf);
  const name = JSON.stringify(queryKey);
  const [wanted, want] = useState({name, count: 0});
  const {data, isPending, isError, isFetching, isFetchNextPageError, isFetchingNextPage, hasNextPage, error, refetch, fetchNextPage} = useInfiniteQuery({
    queryKey,
    queryFn: ({signal, pageParam}) => read(pageParam === '' ? {} : {cursor: pageParam}, signal),
    initialPageParam: '',
    getNextPageParam: page => page.next_cursor ?? undefined,
    refetchInterval: ({state}) => again?.(all(state.data) ?? []) ?? false,
  });
  const count = data?.pages.length ?? 0;
  // A change that comes meanwhile reads the list again, and that takes the place of reading on: so it is done after it.
  const isOwed = wanted.name === name && count < wanted.count && hasNextPage && !isFetching && !isFetchNextPageError;
  useEffect(() => { if (isOwed) void fetchNextPage(); }, [isOwed, fetchNextPage]);
  return {
    /** None before the first page was read. */
    items: all(data),
    isPending,
    /** Whether the pages could not be read. `More` tells of a next page that could not be. */
    isError: isError && !isFetchNextPageError,
    isFetchNextPageError, isFetchingNextPage, hasNextPage, error, refetch,
    readOn: () => {
      want({name, count: count + 1});
      void fetchNextPage();
    },
  };
}
