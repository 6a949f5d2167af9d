/** A task that is read: its events. The hook for React and the console add to it. */
import type {Client} from '../client.ts';
import {fold, NO_RUN, type Run} from '../fold/task.ts';
import type {WorkspaceStream} from '../shared.ts';
import {LAST_OF_TASK, type TaskEvent} from '../stream.ts';
import {Store} from './store.ts';

export interface TaskState {
  run: Run;
  /** Whether an event has come. */
  loaded: boolean;
  error: Error | undefined;
}

export class TaskStore extends Store<TaskState, TaskEvent> {
  #cursor = 0;
  #isOver = false;

  constructor(readonly client: Client, readonly stream: WorkspaceStream, readonly task: string) {
    super({run: NO_RUN, loaded: false, error: undefined});
  }

  protected async read(signal: AbortSignal): Promise<void> {
    // The stream says nothing more to a reader that has the last event.
    if (this.#isOver) return;
    for await (const event of this.stream.task(this.task, {after: this.#cursor, signal})) {
      if (signal.aborted) return;
      if (event.event === 'reset') {
        this.#cursor = 0;
        this.drop();
        this.set({run: NO_RUN});
        continue;
      }
      this.#cursor = event.id;
      this.#isOver = LAST_OF_TASK.has(event.event);
      this.put(event);
    }
  }

  protected fold(state: TaskState, events: readonly TaskEvent[]): TaskState {
    return {...state, loaded: true, run: fold(state.run, events)};
  }
}
