/** The frame of all pages of a workspace: the way to each of them, the list of chats, and the state of the connection. */
import {useCallback, useEffect, useRef, useState, type ReactNode} from 'react';
import {StatusBadge} from '../chat/page.tsx';
import {useChats} from '../chats.ts';
import {session, useLink, type Schemas} from '../hub.ts';
import {Icon, type IconName} from '../icons.tsx';
import {useWorkspaceChanges} from '../live.ts';
import {go, href, type Place} from '../router.ts';
import {Ago, Button, Failure, IconButton, More} from '../ui.tsx';
import {reconnectNow} from '../wake.ts';
import {Palette} from './palette.tsx';
import {ThemeSwitch} from './theme.tsx';

export const PAGES: [page: string, name: string, icon: IconName][] = [
  ['chats', 'Chats', 'chat'], ['files', 'Files', 'folder'], ['flows', 'Flows', 'flow'], ['sandbox', 'Sandbox', 'terminal'],
  ['schedules', 'Schedules', 'clock'], ['webhooks', 'Webhooks', 'hook'], ['people', 'People', 'person'], ['usage', 'Usage', 'chart'], ['health', 'Health', 'pulse'],
];

export function Shell({workspace, workspaces, place, children}: {workspace: Schemas['Workspace']; workspaces: Schemas['Workspace'][]; place: Place; children: ReactNode}) {
  const id = workspace.workspace_id;
  useWorkspaceChanges(id);
  const [isMenuOpen, setMenu] = useState(false);
  // Each opening is a palette of its own, by number: a browser tells the end of a dialog later, and it does not end the next one.
  const [palette, setPalette] = useState(0);
  const openings = useRef(0);
  const openPalette = useCallback(() => setPalette(++openings.current), []);
  useEffect(() => {
    setMenu(false);
  }, [place]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      // A key that the editor took, such as one that deletes a line, is no command of the page.
      const command = (event.metaKey || event.ctrlKey) && !event.altKey && !event.defaultPrevented;
      if (command && !event.shiftKey && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        openPalette();
      } else if (command && event.shiftKey && event.key.toLowerCase() === 'o') {
        event.preventDefault();
        go(href(id, 'chats'));
      } else if (event.key === 'Escape') setMenu(false);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [id, openPalette]);
  return (
    <div className={`shell ${isMenuOpen ? 'menu-open' : ''}`}>
      <a className="skip" href="#main" onClick={event => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the page</a>
      <header className="topbar">
        <IconButton label="Menu" icon="menu" aria-expanded={isMenuOpen} onClick={() => setMenu(!isMenuOpen)} />
        <span className="topbar-title">{workspace.name}</span>
        <IconButton label="Search and commands" icon="search" onClick={openPalette} />
        <a className="button icon-only" href={href(id, 'chats')} aria-label="New chat"><Icon name="plus" /></a>
      </header>
      {isMenuOpen && <div className="scrim" onClick={() => setMenu(false)} />}
      <nav className="sidebar" aria-label="Workspace">
        <div className="workspace-picker">
          <span className="brand-mark" aria-hidden="true">{[...workspace.name][0]?.toUpperCase()}</span>
          <select
            aria-label="Workspace" value={id}
            onChange={event => go(event.target.value === '' ? '#/workspaces' : href(event.target.value, 'chats'))}
          >
            {/* One that is not listed: the select would show the name of another one. */}
            {!workspaces.some(one => one.workspace_id === id) && <option value={id}>{workspace.name}</option>}
            {workspaces.map(one => <option key={one.workspace_id} value={one.workspace_id}>{one.name}</option>)}
            <option value="">All workspaces, and new ones…</option>
          </select>
        </div>
        <button type="button" className="palette-button" onClick={openPalette}>
          <Icon name="search" size={16} /><span>Search</span><kbd>{/Mac/.test(navigator.platform) ? '⌘' : 'Ctrl '}K</kbd>
        </button>
        <ul className="nav">
          {PAGES.map(([page, name, icon]) => (
            <li key={page}><a href={href(id, page)} aria-current={place.page === page ? 'page' : undefined}><Icon name={icon} />{name}</a></li>
          ))}
        </ul>
        <ChatList workspace={id} current={place.page === 'chats' ? place.rest[0] : undefined} />
        <footer className="sidebar-foot">
          <ThemeSwitch />
          <span className="spacer" />
          {session.token() !== undefined && <IconButton label="Sign out" icon="out" onClick={() => { session.signOut(); location.hash = ''; location.reload(); }} />}
        </footer>
      </nav>
      <main id="main" tabIndex={-1}>
        <LinkState />
        {children}
      </main>
      {palette > 0 && <Palette key={palette} workspace={id} onClose={() => setPalette(now => (now === palette ? 0 : now))} />}
    </div>
  );
}

function LinkState() {
  const link = useLink();
  if (link === 'online') return null;
  return (
    <div className="link-state" role="status">
      <span className="spinner" aria-hidden="true" />
      {link === 'offline' ? 'You are offline. What you write is kept.' : 'The connection is lost. Reconnecting…'}
      {link === 'reconnecting' && <Button look="quiet" className="small" onClick={reconnectNow}>Now</Button>}
    </div>
  );
}

function ChatList({workspace, current}: {workspace: string; current: string | undefined}) {
  const chats = useChats(workspace);
  return (
    <section className="chat-list" aria-label="Chats">
      <div className="chat-list-head">
        <h2>Recent chats</h2>
        <a className="button icon-only small" href={href(workspace, 'chats')} aria-label="New chat" title="New chat"><Icon name="plus" size={16} /></a>
      </div>
      {chats.isError && <Failure error={chats.error} retry={() => void chats.refetch()} />}
      {chats.items?.length === 0 && <p className="faint pad">No chats yet.</p>}
      <ul>
        {chats.items?.map(chat => (
          <li key={chat.chat_id}>
            <a href={href(workspace, 'chats', [chat.chat_id])} aria-current={chat.chat_id === current ? 'page' : undefined}>
              <span className="chat-title" dir="auto">{chat.title}</span>
              <StatusBadge status={chat.status} waiting={chat.waiting_for} />
              <span className="faint"><Ago at={chat.active_at} /></span>
            </a>
          </li>
        ))}
      </ul>
      <More list={chats} />
    </section>
  );
}
