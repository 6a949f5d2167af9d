import {useQuery} from '@tanstack/react-query';
import {lazy, Suspense, useEffect} from 'react';
import {ErrorBoundary} from './boundary.tsx';
import {ChatPage, NewChat} from './chat/page.tsx';
import {hub, isRefused} from './hub.ts';
import {SignIn, Workspaces} from './pages/session.tsx';
import {href, instead, usePlace, type Place} from './router.ts';
import {Shell} from './shell/shell.tsx';
import {remember, remembered} from './store.ts';
import {useTitleOfPlace} from './title.ts';
import {Empty, Failure, Loading} from './ui.tsx';

// Parts that a first look does not need.
const FilesPage = lazy(() => import('./files/page.tsx'));
const FlowsPage = lazy(() => import('./flows/page.tsx'));
const SchedulesPage = lazy(() => import('./pages/schedules.tsx'));
const WebhooksPage = lazy(() => import('./pages/webhooks.tsx'));
const SandboxPage = lazy(() => import('./pages/sandbox.tsx'));
const PeoplePage = lazy(() => import('./pages/people.tsx'));
const UsagePage = lazy(() => import('./pages/usage.tsx'));
const HealthPage = lazy(() => import('./pages/health.tsx'));
const ReferencePage = lazy(() => import('./reference/page.tsx'));

const TITLES: Record<string, string> = {chats: 'Chats', files: 'Files', flows: 'Flows', sandbox: 'Sandbox', schedules: 'Schedules', webhooks: 'Webhooks', people: 'People', usage: 'Usage', health: 'Health', reference: 'API reference'};

export function App() {
  const place = usePlace();
  const workspaces = useQuery({
    queryKey: ['workspaces'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces', {query: {limit: 200}, signal}),
  });
  const last = remembered('workspace');
  const list = workspaces.data?.workspaces;
  const listed = list?.find(one => one.workspace_id === place.workspace);
  // One that was made since, or is beyond the list.
  const other = useQuery({
    queryKey: ['workspaces', 'one', place.workspace],
    enabled: list !== undefined && listed === undefined && place.workspace !== undefined,
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}', {path: {workspace_id: place.workspace!}, signal}),
  });
  const known = listed ?? other.data;
  useTitleOfPlace([TITLES[place.page], known?.name, 'BuildScale'].filter(Boolean).join(' · '));
  useEffect(() => {
    if (known) remember('workspace', known.workspace_id);
  }, [known]);
  useEffect(() => {
    // A person who opens the page goes on where they were. The address without a place leaves the history: the way back to it would lead here again.
    if (place.workspace === undefined && place.page === '' && list?.some(one => one.workspace_id === last)) instead(href(last!, 'chats'));
  }, [place, list, last]);

  if (place.page === 'sign-in') return <SignIn />;
  // It describes the hub, and has nothing of a workspace.
  if (place.page === 'reference' && place.workspace === undefined) return <Suspense fallback={<Loading what="the page" />}><ReferencePage place={place} /></Suspense>;
  if (workspaces.isPending) return <main className="center"><Loading what="your workspaces" /></main>;
  if (isRefused(workspaces.error, 'UNAUTHORIZED')) return <SignIn />;
  // A list that could not be read once more is no reason to take the page away, with what a person does on it.
  if (!list) return <main className="center"><Failure error={workspaces.error} retry={() => void workspaces.refetch()} /></main>;
  if (place.workspace === undefined) return <Workspaces workspaces={list} />;
  if (!known && other.isPending) return <main className="center"><Loading what="the workspace" /></main>;
  if (!known && !isRefused(other.error, 'NOT_FOUND', 'FORBIDDEN', 'INVALID_ARGUMENT')) return <main className="center"><Failure error={other.error} retry={() => void other.refetch()} /></main>;
  if (!known) {
    return (
      <main className="center">
        <Empty icon="lock" title="This workspace is not yours"><p>It does not exist, or you are not a member.</p><a className="button primary" href="#/workspaces">Your workspaces</a></Empty>
      </main>
    );
  }
  return (
    <Shell workspace={known} workspaces={list} place={place}>
      <ErrorBoundary resetKey={location.hash}>
        <Suspense fallback={<Loading what="the page" />}><Page key={known.workspace_id} place={place} workspace={known.workspace_id} /></Suspense>
      </ErrorBoundary>
    </Shell>
  );
}

function Page({place, workspace}: {place: Place; workspace: string}) {
  switch (place.page) {
    case 'chats': {
      const chat = place.rest[0];
      return chat === undefined ? <NewChat key={workspace} workspace={workspace} /> : <ChatPage key={chat} workspace={workspace} chat={chat} />;
    }
    case 'files': return <FilesPage workspace={workspace} place={place} />;
    case 'flows': return <FlowsPage workspace={workspace} place={place} />;
    case 'sandbox': return <SandboxPage workspace={workspace} />;
    case 'schedules': return <SchedulesPage workspace={workspace} />;
    case 'webhooks': return <WebhooksPage workspace={workspace} place={place} />;
    case 'people': return <PeoplePage workspace={workspace} />;
    case 'usage': return <UsagePage workspace={workspace} />;
    case 'health': return <HealthPage workspace={workspace} />;
    default: return <Empty icon="search" title="There is no such page"><a className="button" href={href(workspace, 'chats')}>To the chats</a></Empty>;
  }
}
