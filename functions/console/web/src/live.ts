/**
 * The stream of the page: one connection for the changes of its workspace, and for the chats and tasks that it shows. A page that nobody sees
 * holds none. Browsers open six to a hub over HTTP/1.1, for all of its tabs together.
 */
import {useQueryClient} from '@tanstack/react-query';
import {WorkspaceStream, type Connection} from 'buildscale';
import {useEffect, useState, useSyncExternalStore} from 'react';
import {hub, setLink, type Schemas} from './hub.ts';
import {wake} from './wake.ts';

/** How long a hidden page keeps its streams, in milliseconds. */
const HIDDEN_MS = 5_000;

export function useVisible(): boolean {
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    let timer: number | undefined;
    const changed = () => {
      clearTimeout(timer);
      if (document.hidden) timer = window.setTimeout(() => setVisible(false), HIDDEN_MS);
      else setVisible(true);
    };
    document.addEventListener('visibilitychange', changed);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', changed);
    };
  }, []);
  return visible;
}

/** Tells the page of the connection. The first pause is no matter: it is how streams end. */
function tell(connection: Connection): void {
  if (connection.state === 'open') setLink('online');
  if (connection.state === 'waiting' && connection.reason !== 'ended') setLink('reconnecting');
}

const streams = new Map<string, WorkspaceStream>();
/** Told when a connection of a workspace is open, by workspace. */
const opened = new Map<string, () => void>();
/** The stream of a workspace. A page shows one workspace at a time; the connection of another one ends with its last reader. */
export function streamOf(workspace: string): WorkspaceStream {
  const onConnection = (connection: Connection) => {
    tell(connection);
    if (connection.state === 'open') opened.get(workspace)?.();
  };
  const stream = streams.get(workspace) ?? new WorkspaceStream(hub, workspace, {onConnection, wake});
  streams.set(workspace, stream);
  return stream;
}

/** In the place of the subscription to a store. */
const AWAY = () => () => undefined;

/** The state of a store. A page that nobody sees follows nothing. */
export function useStore<State>({subscribe, snapshot}: {subscribe: (listen: () => void) => () => void; snapshot: () => State}): State {
  return useSyncExternalStore(useVisible() ? subscribe : AWAY, snapshot);
}

/** Keeps the lists of a workspace up to date from its stream of changes. */
export function useWorkspaceChanges(workspace: string | undefined): void {
  const client = useQueryClient();
  const visible = useVisible();
  useEffect(() => {
    if (workspace === undefined || !visible) return;
    const controller = new AbortController();
    const stale = new Map<string, string[]>();
    let timer: number | undefined;
    const refresh = () => {
      for (const key of stale.values()) void client.invalidateQueries({queryKey: [workspace, ...key]});
      stale.clear();
      timer = undefined;
    };
    const markOne = (...key: string[]) => {
      stale.set(key.join('/'), key);
      timer ??= window.setTimeout(refresh, 150);
    };
    const mark = (...names: string[]) => names.forEach(name => markOne(name));
    const markAll = () => mark('chats', 'chat', 'files', 'tasks', 'flows', 'waiting');
    // The stream tells of the changes since its first connection was open. Lists that were read before that may lack older ones.
    const first = () => {
      opened.delete(workspace);
      markAll();
    };
    opened.set(workspace, first);
    void (async () => {
      markAll();
      for await (const {event, data} of streamOf(workspace).changes({signal: controller.signal})) {
        if (event === 'file_updated') mark('files', 'flows');
        if (event === 'chat_updated' || event === 'chat_deleted') mark('chats', 'usage');
        if (event === 'chat_updated') {
          // A new title, model or mode: the chat's own stream, which tells of turns, has no event of these.
          const shown = client.getQueryData<Schemas['ChatWithHistory']>([workspace, 'chat', data.chat_id]);
          const isSame = shown?.title === data.title && shown.mode === data.mode && (shown.model ?? undefined) === (data.model ?? undefined);
          if (!isSame) markOne('chat', data.chat_id);
        }
        if (event === 'task_updated' || event === 'task_deleted') mark('tasks', 'usage', 'waiting');
        if (event === 'waiting_updated') mark('waiting');
        if (event === 'reset') markAll();
      }
    })().catch(() => undefined);
    return () => {
      controller.abort();
      clearTimeout(timer);
      opened.delete(workspace);
      setLink('online');
    };
  }, [workspace, visible, client]);
}
