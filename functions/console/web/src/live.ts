/** Streams of the page. A page that nobody sees holds no connection: browsers open six to a hub, for all of its tabs together. */
import {useQueryClient} from '@tanstack/react-query';
import {watchWorkspace, type Connection} from 'buildscale';
import {useEffect, useState} from 'react';
import {hub, setLink, wake} from './hub.ts';

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

/** Tells the page of a stream's connection. The first pause of a stream is no matter: it is how streams end. */
export function linkOf(stream: string): (connection: Connection) => void {
  return connection => {
    if (connection.state === 'open') setLink(stream, 'online');
    if (connection.state === 'waiting' && connection.reason !== 'ended') setLink(stream, 'reconnecting');
  };
}

/** Keeps the lists of a workspace up to date from its stream of changes. */
export function useWorkspaceChanges(workspace: string | undefined): void {
  const client = useQueryClient();
  const visible = useVisible();
  useEffect(() => {
    if (workspace === undefined || !visible) return;
    const controller = new AbortController();
    const stale = new Set<string>();
    let timer: number | undefined;
    const refresh = () => {
      for (const name of stale) void client.invalidateQueries({queryKey: [workspace, name]});
      stale.clear();
      timer = undefined;
    };
    const mark = (...names: string[]) => {
      names.forEach(name => stale.add(name));
      timer ??= window.setTimeout(refresh, 150);
    };
    void (async () => {
      mark('chats', 'files', 'tasks');
      const watching = {signal: controller.signal, onConnection: linkOf('workspace'), wake};
      for await (const {event} of watchWorkspace(hub, workspace, watching)) {
        if (event === 'file_updated') mark('files', 'flows');
        if (event === 'chat_updated' || event === 'chat_deleted') mark('chats', 'usage');
        if (event === 'task_updated' || event === 'task_deleted') mark('tasks', 'usage');
        if (event === 'reset') mark('chats', 'files', 'tasks', 'flows');
      }
    })().catch(() => undefined);
    return () => {
      controller.abort();
      clearTimeout(timer);
      setLink('workspace', undefined);
    };
  }, [workspace, visible, client]);
}
