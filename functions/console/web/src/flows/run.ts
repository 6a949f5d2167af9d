/** The run of a task, folded from its events while they come. */
import {useQueryClient} from '@tanstack/react-query';
import type {TaskEvent} from 'buildscale';
import {useEffect, useState} from 'react';
import {streamOf, useVisible} from '../live.ts';
import {fold, NO_RUN, type Run} from './fold.ts';

export function useRun(workspace: string, task: string): {run: Run; error: unknown} {
  const client = useQueryClient();
  const visible = useVisible();
  const [run, setRun] = useState(NO_RUN);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!visible) return;
    const controller = new AbortController();
    let pending: TaskEvent[] = [];
    let frame: number | undefined;
    // The whole run is folded anew: its events are few, and the fold is the same afterwards.
    let whole = NO_RUN;
    const flush = () => {
      frame = undefined;
      whole = fold(whole, pending);
      pending = [];
      setRun(whole);
      void client.invalidateQueries({queryKey: [workspace, 'tasks', 'one', task]});
    };
    void (async () => {
      for await (const event of streamOf(workspace).task(task, {after: 0, signal: controller.signal})) {
        pending.push(event);
        frame ??= window.setTimeout(flush, 40);
      }
    })().catch(setError);
    return () => {
      controller.abort();
      clearTimeout(frame);
    };
  }, [workspace, task, visible, client]);
  return {run, error};
}
