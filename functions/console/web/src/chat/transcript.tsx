/** The rows of a chat, of which only those in sight are in the document. */
import {useVirtualizer} from '@tanstack/react-virtual';
import {useEffect, useLayoutEffect, useMemo, useRef, useState, type MouseEvent} from 'react';
import {useView} from '../store.ts';
import {Button, Failure} from '../ui.tsx';
import type {Live} from './live.ts';
import {Folds, RowView, type FoldStates} from './rows.tsx';

/** How near to the end, in pixels, a reader follows what comes. */
const NEAR = 80;

function foldsOf(kept: Record<string, boolean>, keep: (kept: Record<string, boolean>) => void): FoldStates {
  const all = {...kept};
  return {
    get: id => all[id] ?? false,
    set: (id, isOpen) => {
      all[id] = isOpen;
      keep({...all});
    },
  };
}

export function Transcript({live, older, workspace, chat, namesAuthors, mayApprove, mayWrite}: {live: Live; older: () => Promise<void>; workspace: string; chat: string; namesAuthors: boolean; mayApprove: boolean; mayWrite: boolean}) {
  const {rows} = live.transcript;
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  /** Where the list was last seen and how large, in pixels. */
  const seen = useRef({top: 0, all: 0, inSight: 0});
  /** Whether a pointer is down on the list: what is pressed must not move away before it is released. */
  const isHeld = useRef(false);
  const [kept, keep] = useView<Record<string, boolean>>(`folds/${chat}`, {});
  const folds = useMemo(() => foldsOf(kept, keep), [chat]);
  const [isAway, setAway] = useState(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: at => rows[at]?.kind === 'assistant' ? 140 : 44,
    getItemKey: at => rows[at]?.id ?? at,
    overscan: 8,
    paddingStart: 24,
    paddingEnd: 24,
  });
  /** Whether the reader follows. A row above that gets another size moves the list for a reader further up alone: at the end, `toEnd` does. */
  const follow = (isAtEnd: boolean) => {
    follows.current = isAtEnd;
    virtual.shouldAdjustScrollPositionOnItemSizeChange = isAtEnd ? () => false : undefined;
  };
  const height = virtual.getTotalSize();
  const look = (element: HTMLDivElement) => {
    seen.current = {top: element.scrollTop, all: element.scrollHeight, inSight: element.clientHeight};
  };
  const toEnd = () => {
    const element = scroller.current;
    if (!element) return;
    element.scrollTop = element.scrollHeight;
    look(element);
  };
  useLayoutEffect(() => {
    follow(true);
    toEnd();
  }, [chat, live.loaded]);
  // A reader at the end follows new rows; a reader further up stays in place.
  useLayoutEffect(() => {
    if (follows.current && !isHeld.current) toEnd();
    else tellDistance();
  }, [rows, height]);
  const loading = useRef(false);
  /** Why the last older page could not be read. The next try is for the reader: each scroll would be one. */
  const [failure, setFailure] = useState<Error>();
  const tellDistance = (): number => {
    const element = scroller.current;
    const distance = element ? element.scrollHeight - element.scrollTop - element.clientHeight : 0;
    setAway(distance > 400);
    return distance;
  };
  const scrolled = () => {
    const element = scroller.current;
    if (!element) return;
    const {top, all, inSight} = seen.current;
    const isReader = element.scrollHeight === all && element.clientHeight === inSight;
    const isUp = element.scrollTop < top;
    look(element);
    // Rows that grow, and a page that gets smaller, move the end away from a reader, who goes on following. A reader leaves by going up
    // in a list that keeps its size: of a list that got another size, the browser may have told a place that it moved itself.
    if (tellDistance() < NEAR) follow(true);
    else if (isUp && isReader) follow(false);
    if (element.scrollTop < 400 && live.before !== undefined && !loading.current && !failure) void loadOlder();
  };
  const loadOlder = async () => {
    loading.current = true;
    const from = scroller.current?.scrollHeight ?? 0;
    setFailure(undefined);
    await older().catch(setFailure);
    // The rows in sight stay in sight.
    requestAnimationFrame(() => {
      const element = scroller.current;
      if (element) element.scrollTop += element.scrollHeight - from;
      loading.current = false;
    });
  };
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => follows.current && !isHeld.current && toEnd());
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    // The click comes after this, and decides whether the reader goes on following.
    const release = () => setTimeout(() => {
      if (isHeld.current && follows.current) toEnd();
      isHeld.current = false;
    });
    const events = ['pointerup', 'pointercancel'] as const;
    events.forEach(event => addEventListener(event, release));
    return () => events.forEach(event => removeEventListener(event, release));
  }, []);
  /** A reader who opens a fold reads it: it stays in place. */
  const clicked = (event: MouseEvent) => {
    if ((event.target as Element).closest('.fold-head')) follow(false);
  };
  return (
    <div className="transcript-frame">
      <div className="transcript" ref={scroller} onScroll={scrolled} onPointerDown={() => { isHeld.current = true; }} onClickCapture={clicked} tabIndex={0} role="log" aria-label="Conversation" aria-live="off">
        {live.before !== undefined && (
          <div className="older">{failure ? <Failure error={failure} retry={() => void loadOlder()} /> : <Button look="quiet" className="small" onClick={() => void loadOlder()}>Load earlier messages</Button>}</div>
        )}
        <div className="rows" style={{height}}>
          <Folds value={folds}>
          {virtual.getVirtualItems().map(item => {
            const row = rows[item.index];
            return row && (
              <div key={item.key} data-index={item.index} ref={virtual.measureElement} className="row" style={{transform: `translateY(${item.start}px)`}}>
                <RowView row={row} workspace={workspace} chat={chat} namesAuthors={namesAuthors} mayApprove={mayApprove} mayWrite={mayWrite} />
              </div>
            );
          })}
          </Folds>
        </div>
      </div>
      {isAway && <Button className="to-end" icon="down" onClick={toEnd}>Newest</Button>}
    </div>
  );
}
