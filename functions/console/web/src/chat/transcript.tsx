/** The rows of a chat, of which only those in sight are in the document. */
import {useVirtualizer} from '@tanstack/react-virtual';
import {useEffect, useLayoutEffect, useRef, useState} from 'react';
import {Button} from '../ui.tsx';
import type {Live} from './live.ts';
import {RowView} from './rows.tsx';

/** How near to the end, in pixels, a reader follows what comes. */
const NEAR = 80;

export function Transcript({live, older, workspace, chat, mayApprove, mayWrite}: {live: Live; older: () => Promise<void>; workspace: string; chat: string; mayApprove: boolean; mayWrite: boolean}) {
  const {rows} = live.transcript;
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
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
  const height = virtual.getTotalSize();
  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    follows.current = true;
    toEnd();
  }, [chat, live.loaded]);
  // A reader at the end follows new rows; a reader further up stays in place.
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  }, [rows, height]);
  const loading = useRef(false);
  const scrolled = () => {
    const element = scroller.current;
    if (!element) return;
    const distance = element.scrollHeight - element.scrollTop - element.clientHeight;
    follows.current = distance < NEAR;
    setAway(distance > 400);
    if (element.scrollTop < 400 && live.before !== undefined && !loading.current) void loadOlder();
  };
  const loadOlder = async () => {
    loading.current = true;
    const from = scroller.current?.scrollHeight ?? 0;
    await older().catch(() => undefined);
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
    const observer = new ResizeObserver(() => follows.current && toEnd());
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div className="transcript-frame">
      <div className="transcript" ref={scroller} onScroll={scrolled} tabIndex={0} role="log" aria-label="Conversation" aria-live="off">
        {live.before !== undefined && <div className="older"><Button look="quiet" className="small" onClick={() => void loadOlder()}>Load earlier messages</Button></div>}
        <div className="rows" style={{height}}>
          {virtual.getVirtualItems().map(item => {
            const row = rows[item.index];
            return row && (
              <div key={item.key} data-index={item.index} ref={virtual.measureElement} className="row" style={{transform: `translateY(${item.start}px)`}}>
                <RowView row={row} workspace={workspace} chat={chat} mayApprove={mayApprove} mayWrite={mayWrite} />
              </div>
            );
          })}
        </div>
      </div>
      {isAway && <Button className="to-end" icon="down" onClick={toEnd}>Newest</Button>}
    </div>
  );
}
