/** Everything by keyboard: pages, chats, flows, and a search in all files and conversations. */
import {useQuery, useQueryClient} from '@tanstack/react-query';
import {useDeferredValue, useEffect, useId, useRef, useState, type KeyboardEvent} from 'react';
import {hub, type Schemas} from '../hub.ts';
import {Icon, type IconName} from '../icons.tsx';
import {go, href, partsOf} from '../router.ts';
import {applyTheme, remember, type Theme} from '../store.ts';
import {Failure, nameOf} from '../ui.tsx';
import {PAGES} from './shell.tsx';

interface Entry {
  key: string;
  icon: IconName;
  title: string;
  detail?: string;
  act: () => void;
}

export function Palette({workspace, onClose}: {workspace: string; onClose: () => void}) {
  const client = useQueryClient();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const wanted = useDeferredValue(query.trim());
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, []);
  const found = useQuery({
    queryKey: [workspace, 'search', wanted],
    // A word may have two letters, as in Chinese.
    enabled: wanted.length > 1,
    queryFn: ({signal}) => hub.post('/api/v1/workspaces/{workspace_id}/search', {path: {workspace_id: workspace}, body: {query: wanted, limit: 8}, signal}),
  });
  const chats = client.getQueryData<{pages: Schemas['ChatPage'][]}>([workspace, 'chats'])?.pages.flatMap(page => page.chats) ?? [];
  const to = (page: string, rest: string[] = []) => () => go(href(workspace, page, rest));
  const themed = (theme: Theme) => () => { remember('theme', theme); applyTheme(theme); };
  const commands: Entry[] = [
    {key: 'new', icon: 'plus', title: 'New chat', detail: 'Ctrl Shift O', act: to('chats')},
    ...PAGES.map(([page, name, icon]): Entry => ({key: page, icon, title: `Go to ${name.toLowerCase()}`, act: to(page)})),
    {key: 'trash', icon: 'trash', title: 'Go to the trash', act: () => go(href(workspace, 'files', [], {view: 'trash'}))},
    {key: 'workspaces', icon: 'folder', title: 'Change the workspace', act: () => go('#/workspaces')},
    {key: 'reference', icon: 'file', title: 'Go to the API reference', act: () => go('#/reference')},
    {key: 'light', icon: 'sun', title: 'Light theme', act: themed('light')},
    {key: 'dark', icon: 'moon', title: 'Dark theme', act: themed('dark')},
    {key: 'system', icon: 'screen', title: 'Theme of the system', act: themed('system')},
  ];
  const words = query.trim().toLowerCase().split(/\s+/);
  const fits = (text: string) => words.every(word => text.toLowerCase().includes(word));
  const entries: Entry[] = [
    ...commands.filter(entry => fits(entry.title)),
    ...chats.filter(chat => fits(chat.title)).slice(0, 6).map((chat): Entry => ({key: chat.chat_id, icon: 'chat', title: chat.title, detail: 'chat', act: to('chats', [chat.chat_id])})),
    ...(wanted.length > 1 ? found.data?.results ?? [] : []).map((result): Entry => {
      const chat = /^\/chats\/([0-9a-f-]{36})/.exec(result.path)?.[1];
      const snippet = result.snippet.map(part => part.text).join('').replace(/\s+/g, ' ').slice(0, 90);
      return {
        key: `s:${result.file_id}:${result.path}`, icon: chat ? 'chat' : 'file', title: snippet || nameOf(result.path), detail: chat ? 'in a chat' : result.path,
        act: chat ? to('chats', [chat]) : to('files', partsOf(result.path)),
      };
    }),
  ];
  const chosen = Math.min(at, Math.max(entries.length - 1, 0));
  const act = (entry: Entry | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    entry.act();
  };
  const pressed = (event: KeyboardEvent) => {
    // These keys choose a word of an input method.
    if (event.nativeEvent.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt((chosen + step + entries.length) % Math.max(entries.length, 1));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      act(entries[chosen]);
    }
  };
  useEffect(() => {
    document.getElementById(`${id}-${chosen}`)?.scrollIntoView({block: 'nearest'});
  }, [chosen, id]);
  return (
    <dialog ref={dialog} className="palette" aria-label="Search and commands" onClose={onClose} onClick={event => event.target === dialog.current && dialog.current?.close()}>
      <div className="palette-head">
        <Icon name="search" />
        <input
          role="combobox" aria-expanded="true" aria-controls={`${id}-list`} aria-activedescendant={entries.length > 0 ? `${id}-${chosen}` : undefined} aria-label="Search and commands"
          placeholder="A page, a chat, or words in files and conversations" value={query} autoFocus
          onChange={event => { setQuery(event.target.value); setAt(0); }} onKeyDown={pressed}
        />
      </div>
      <ul role="listbox" id={`${id}-list`} aria-label="Results">
        {entries.map((entry, index) => (
          <li key={entry.key} id={`${id}-${index}`} role="option" aria-selected={index === chosen} onMouseMove={() => setAt(index)} onClick={() => act(entry)}>
            <Icon name={entry.icon} /><span className="grow" dir="auto">{entry.title}</span>{entry.detail && <span className="faint">{entry.detail}</span>}
          </li>
        ))}
      </ul>
      {found.isError && <div className="pad"><Failure error={found.error} retry={() => void found.refetch()} /></div>}
      {found.isFetching ? <p className="faint pad" role="status">Searching…</p> : entries.length === 0 && !found.isError && <p className="faint pad" role="status">Nothing found.</p>}
    </dialog>
  );
}
