/** The run of a task on the page: the store of the client. */
import {useMemo} from 'react';
import {TaskStore} from '../../../../../clients/typescript/src/store/task.ts';
import {hub, queries} from '../hub.ts';
import {streamOf, useStore} from '../live.ts';
import type {Run} from './fold.ts';

/** The least time between two looks at the task as a whole, in milliseconds. */
const LOOK_MS = 40;

class PageRun extends TaskStore {
  #timer: number | undefined;

  constructor(workspace: string, task: string) {
    super(hub, streamOf(workspace), task);
  }

  protected folded(): void {
    this.#timer ??= window.setTimeout(() => {
      this.#timer = undefined;
      void queries.invalidateQueries({queryKey: [this.stream.workspace, 'tasks', 'one', this.task]});
    }, LOOK_MS);
  }
}

export function useRun(workspace: string, task: string): {run: Run; error: Error | undefined} {
  return useStore(useMemo(() => new PageRun(workspace, task), [workspace, task]));
}
