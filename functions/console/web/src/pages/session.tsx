/** The pages before a workspace: signing in, and the choice of a workspace. */
import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {Client} from 'buildscale';
import {useEffect, useState} from 'react';
import {hub, isRefused, session, type Schemas} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {begin, faultOfLogin, offered} from '../login.ts';
import {useOnce} from '../once.ts';
import {go, href, usePlace} from '../router.ts';
import {ThemeSwitch} from '../shell/theme.tsx';
import {useDraft} from '../store.ts';
import {Ago, Button, Failure, Field} from '../ui.tsx';

/** Signs in at the issuer of the hub, where it has one, or with a token. A link with a token fills it in, and the person decides. */
export function SignIn() {
  const client = useQueryClient();
  const place = usePlace();
  const isLink = place.page === 'sign-in';
  const [token, setToken] = useState(isLink ? place.query.get('token') ?? '' : '');
  useEffect(() => {
    // The address is seen by others, and is in the history.
    if (isLink) history.replaceState(null, '', `${location.pathname}#/sign-in`);
  }, [isLink]);
  const offer = useQuery({queryKey: ['offer'], queryFn: offered, staleTime: Infinity});
  const leaving = useMutation({mutationFn: begin});
  const signing = useMutation({
    mutationFn: async () => {
      // The token is tried before it is kept.
      await new Client({url: hub.url, token: token.trim()}).get('/api/v1/workspaces', {query: {limit: 1}});
      session.signIn(token.trim());
    },
    onSuccess: async () => {
      if (isLink) go('#/workspaces');
      await client.resetQueries();
    },
  });
  const fault = faultOfLogin();
  const isWrong = isRefused(signing.error, 'UNAUTHORIZED');
  return (
    <main className="center">
      <form className="panel" onSubmit={event => { event.preventDefault(); signing.mutate(); }}>
        <Brand />
        <h1>Sign in</h1>
        {fault && <p className="fault" role="alert">{fault}</p>}
        {offer.data && <>
          <Button look="primary" className="wide" onClick={() => leaving.mutate(offer.data!)} disabled={leaving.isPending} autoFocus>Sign in at {new URL(offer.data.issuer).host}</Button>
          <p className="or faint">or with a token</p>
        </>}
        {(offer.isError || leaving.isError) && <Failure error={offer.error ?? leaving.error} retry={() => offer.data ? leaving.mutate(offer.data) : void offer.refetch()} />}
        {!offer.data && <p className="lead">This hub asks for a token: one that its operator gave you, or an API key.</p>}
        {isLink && token !== '' && <p className="lead">The link that you followed has a token. Sign in with it only if you know its sender.</p>}
        <Field label="Token" hint="It is kept in this browser until you sign out.">
          <input type="password" autoComplete="current-password" required autoFocus={!offer.data} value={token} onChange={event => setToken(event.target.value)} aria-invalid={isWrong} />
        </Field>
        {isWrong && <p className="fault" role="alert">The hub does not accept this token. It may have expired.</p>}
        {signing.isError && !isWrong && <Failure error={signing.error} />}
        <Button look={offer.data ? 'plain' : 'primary'} type="submit" className="wide" disabled={signing.isPending || token.trim() === ''}>{signing.isPending ? 'Signing in…' : 'Sign in'}</Button>
      </form>
    </main>
  );
}

export function Brand() {
  return <span className="brand"><span className="brand-mark" aria-hidden="true">B</span>BuildScale</span>;
}

export function Workspaces({workspaces}: {workspaces: Schemas['Workspace'][]}) {
  const client = useQueryClient();
  const [name, setName] = useDraft('new-workspace');
  const once = useOnce();
  const making = useMutation({
    mutationFn: () => once(name.trim(), idempotencyKey => hub.post('/api/v1/workspaces', {body: {name: name.trim()}, idempotencyKey})),
    onSuccess: async made => {
      setName('');
      await client.invalidateQueries({queryKey: ['workspaces']});
      go(href(made.workspace_id, 'chats'));
    },
  });
  return (
    <main className="center">
      <div className="panel wide">
        <header className="panel-head"><Brand /><span className="spacer" /><ThemeSwitch /></header>
        <h1>{workspaces.length === 0 ? 'Make your first workspace' : 'Workspaces'}</h1>
        <p className="lead">A workspace has files, chats and flows. Nobody sees it who is not a member.</p>
        {workspaces.length > 0 && (
          <ul className="rows-list">
            {workspaces.map(one => (
              <li key={one.workspace_id}>
                <a href={href(one.workspace_id, 'chats')}><Icon name="folder" /><span className="grow">{one.name}</span><span className="faint"><Ago at={one.created_at} /></span></a>
              </li>
            ))}
          </ul>
        )}
        <form className="inline-form" onSubmit={event => { event.preventDefault(); making.mutate(); }}>
          <input aria-label="Name of a new workspace" placeholder="Name of a new workspace" value={name} required maxLength={100} onChange={event => setName(event.target.value)} autoFocus={workspaces.length === 0} />
          <Button look="primary" icon="plus" type="submit" disabled={making.isPending || name.trim() === ''}>Make it</Button>
        </form>
        {making.isError && <Failure error={making.error} />}
        {session.token() !== undefined && <Button look="quiet" icon="out" onClick={() => { session.signOut(); location.reload(); }}>Sign out</Button>}
      </div>
    </main>
  );
}
