/** The members of the workspace with their roles, and one's own API keys. */
import {useMutation, useQuery} from '@tanstack/react-query';
import {Access} from './access.tsx';
import {hub, refreshSoon, type Schemas} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useRights} from '../rights.ts';
import {useFields, useView} from '../store.ts';
import {Secret} from './secret.tsx';
import {Ago, Badge, Button, Dialog, Empty, Failure, Field, IconButton, Loading} from '../ui.tsx';

const ROLES: Schemas['Role'][] = ['viewer', 'member', 'editor', 'admin', 'owner'];
const SCOPES: Schemas['Action'][] = ['read', 'converse', 'run', 'write', 'approve'];

export default function PeoplePage({workspace}: {workspace: string}) {
  return (
    <div className="page">
      <Members workspace={workspace} />
      <Access workspace={workspace} />
      <Keys />
    </div>
  );
}

function Members({workspace}: {workspace: string}) {
  const {may} = useRights(workspace);
  // The member is a draft while its dialog is open: a reload opens it again.
  const [member, change, clear] = useFields<NewMember>(`${workspace}/member`, {isOpen: false, subject: '', role: 'editor'});
  const path = {workspace_id: workspace};
  const members = useQuery({
    queryKey: [workspace, 'members'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/members', {path, query: {limit: 200}, signal}),
  });
  const changing = useMutation({
    mutationFn: async ({user, role}: {user: string; role: Schemas['Role'] | undefined}) => {
      const at = {...path, user_id: user};
      if (role === undefined) await hub.delete('/api/v1/workspaces/{workspace_id}/members/{user_id}', {path: at});
      else await hub.patch('/api/v1/workspaces/{workspace_id}/members/{user_id}', {path: at, body: {role}});
    },
    onSettled: () => refreshSoon([workspace, 'members']),
  });
  const list = members.data?.members;
  return (
    <>
      <header className="page-head">
        <h1>People</h1>
        <span className="spacer" />
        {may('administer') && <Button icon="plus" onClick={() => change({isOpen: true})}>Add a member</Button>}
      </header>
      {members.isPending && <Loading what="the members" />}
      {members.isError && <Failure error={members.error} retry={() => void members.refetch()} />}
      {changing.isError && <Failure error={changing.error} />}
      {list?.length === 0 && <Empty icon="person" title="You work alone here"><p>The machine's own person is on no list. Members sign in with accounts.</p></Empty>}
      {list && list.length > 0 && (
        <ul className="rows-list">
          {list.map(({user_id: user, subject, role, added_at: at}) => {
            const name = subject ?? user;
            return (
              <li key={user} className="list-row">
                <Icon name="person" />
                <span className="grow">{name}</span>
                <span className="faint"><Ago at={at} /></span>
                {may('administer') ? <>
                  <select className="picker" aria-label={`Role of ${name}`} value={role} onChange={event => changing.mutate({user, role: event.target.value as Schemas['Role']})}>
                    {ROLES.map(one => <option key={one}>{one}</option>)}
                  </select>
                  <IconButton label={`Remove ${name}`} icon="trash" onClick={() => changing.mutate({user, role: undefined})} disabled={changing.isPending} />
                </> : <Badge>{role}</Badge>}
              </li>
            );
          })}
        </ul>
      )}
      {member.isOpen && <Add workspace={workspace} member={member} change={change} onClose={clear} />}
    </>
  );
}

interface NewMember {
  isOpen: boolean;
  subject: string;
  role: Schemas['Role'];
}

function Add({workspace, member: {subject, role}, change, onClose}: {
  workspace: string; member: NewMember; change: (some: Partial<NewMember>) => void; onClose: () => void;
}) {
  const adding = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/members', {path: {workspace_id: workspace}, body: {subject: subject.trim(), role}}),
    onSuccess: () => {
      refreshSoon([workspace, 'members']);
      onClose();
    },
  });
  return (
    <Dialog title="Add a member" onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); adding.mutate(); }}>
        <Field label="Name at the issuer" hint="The name that is in their tokens, mostly an e-mail address."><input value={subject} required autoFocus onChange={event => change({subject: event.target.value})} /></Field>
        <Field label="Role"><select value={role} onChange={event => change({role: event.target.value as Schemas['Role']})}>{ROLES.map(one => <option key={one}>{one}</option>)}</select></Field>
        {adding.isError && <Failure error={adding.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={adding.isPending || subject.trim() === ''}>Add</Button></div>
      </form>
    </Dialog>
  );
}

function Keys() {
  const [isMaking, setMaking] = useView('key', false);
  const keys = useQuery({queryKey: ['keys'], queryFn: ({signal}) => hub.get('/api/v1/keys', {query: {limit: 200}, signal})});
  const revoking = useMutation({
    mutationFn: (key: string) => hub.delete('/api/v1/keys/{key_id}', {path: {key_id: key}}),
    onSettled: () => refreshSoon(['keys']),
  });
  const list = keys.data?.keys.filter(key => !key.revoked_at);
  return (
    <section>
      <header className="page-head"><h2>Your API keys</h2><span className="spacer" /><Button icon="plus" onClick={() => setMaking(true)}>New key</Button></header>
      {keys.isError && <Failure error={keys.error} retry={() => void keys.refetch()} />}
      {revoking.isError && <Failure error={revoking.error} />}
      {list?.length === 0 && <p className="faint">You have none. A program uses a key where a person signs in.</p>}
      {list && list.length > 0 && (
        <ul className="rows-list">
          {list.map(key => (
            <li key={key.key_id} className="list-row">
              <Icon name="lock" />
              <span className="grow stacked"><strong>{key.name}</strong><span className="faint">{key.scopes.join(', ')}</span></span>
              <span className="faint">{key.expires_at ? <>expires <Ago at={key.expires_at} /></> : 'does not expire'}</span>
              <Button className="small" look="danger" aria-label={`Revoke ${key.name}`} onClick={() => revoking.mutate(key.key_id)} disabled={revoking.isPending}>Revoke</Button>
            </li>
          ))}
        </ul>
      )}
      {isMaking && <MakeKey onClose={() => setMaking(false)} />}
    </section>
  );
}

function MakeKey({onClose}: {onClose: () => void}) {
  const [{name, scopes, days}, change, clear] = useFields('key', {name: '', scopes: ['read', 'converse'] as Schemas['Action'][], days: '30'});
  const making = useMutation({
    mutationFn: () => hub.post('/api/v1/keys', {
      body: {name: name.trim(), scopes, ...(days === '' ? {} : {expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString()})},
    }),
    onSuccess: () => {
      clear();
      refreshSoon(['keys']);
    },
  });
  if (making.data) return <Secret title="Your new key" name="The key" secret={making.data.key} onClose={onClose} />;
  const toggle = (scope: Schemas['Action']) => change({scopes: scopes.includes(scope) ? scopes.filter(one => one !== scope) : [...scopes, scope]});
  return (
    <Dialog title="New key" onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); making.mutate(); }}>
        <Field label="Name"><input value={name} required maxLength={100} autoFocus onChange={event => change({name: event.target.value})} /></Field>
        <fieldset className="field scopes">
          <legend className="field-label">Rights</legend>
          {SCOPES.map(scope => <label key={scope} className="check-line"><input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} /> {scope}</label>)}
        </fieldset>
        <Field label="Life"><select value={days} onChange={event => change({days: event.target.value})}><option value="7">7 days</option><option value="30">30 days</option><option value="365">A year</option><option value="">Without end</option></select></Field>
        {making.isError && <Failure error={making.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={making.isPending || name.trim() === '' || scopes.length === 0}>Make it</Button></div>
      </form>
    </Dialog>
  );
}
