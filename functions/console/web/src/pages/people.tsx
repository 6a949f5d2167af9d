/** The members of the workspace with their roles, and one's own API keys. */
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {useState} from 'react';
import {Access} from './access.tsx';
import {hub, refreshSoon, type Schemas} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {usePages} from '../paged.ts';
import {useRights} from '../rights.ts';
import {useFields, useView} from '../store.ts';
import {Secret} from './secret.tsx';
import {Ago, Badge, Button, Confirm, Dialog, Empty, Failure, Field, IconButton, Loading, More} from '../ui.tsx';

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
  const members = usePages({
    queryKey: [workspace, 'members', 'pages'],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/members', {path: {workspace_id: workspace}, query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.members,
  });
  const list = members.items;
  return (
    <>
      <header className="page-head">
        <h1>People</h1>
        <span className="spacer" />
        {may('administer') && <Button icon="plus" onClick={() => change({isOpen: true})}>Add a member</Button>}
      </header>
      {members.isPending && <Loading what="the members" />}
      {members.isError && <Failure error={members.error} retry={() => void members.refetch()} />}
      {list?.length === 0 && <Empty icon="person" title="You work alone here"><p>The machine's own person is on no list. Members sign in with accounts.</p></Empty>}
      {list && list.length > 0 && (
        <ul className="rows-list">
          {list.map(one => <Member key={one.user_id} workspace={workspace} member={one} mayChange={may('administer')} />)}
        </ul>
      )}
      <More list={members} />
      {member.isOpen && <Add workspace={workspace} member={member} change={change} onClose={clear} />}
    </>
  );
}

function Member({workspace, member, mayChange}: {workspace: string; member: Schemas['Member']; mayChange: boolean}) {
  const {user_id: user, subject, role, added_at: at} = member;
  const [asks, setAsks] = useState(false);
  const client = useQueryClient();
  const path = {workspace_id: workspace, user_id: user};
  const changing = useMutation({
    mutationFn: (role: Schemas['Role']) => hub.patch('/api/v1/workspaces/{workspace_id}/members/{user_id}', {path, body: {role}}),
    // The role that was picked is shown until the list was read again.
    onSettled: () => client.invalidateQueries({queryKey: [workspace, 'members']}),
  });
  const removing = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/members/{user_id}', {path}),
    onSuccess: () => { setAsks(false); refreshSoon([workspace, 'members']); },
  });
  const name = subject ?? user;
  return (
    <li className={`list-row ${changing.isError ? 'wrap' : ''}`}>
      <Icon name="person" />
      <span className="grow">{name}</span>
      <span className="faint"><Ago at={at} /></span>
      {mayChange ? <>
        <select className="picker" aria-label={`Role of ${name}`} value={changing.isPending ? changing.variables : role} onChange={event => changing.mutate(event.target.value as Schemas['Role'])}>
          {ROLES.map(one => <option key={one}>{one}</option>)}
        </select>
        <IconButton label={`Remove ${name}`} icon="trash" onClick={() => setAsks(true)} />
      </> : <Badge>{role}</Badge>}
      {changing.isError && <Failure error={changing.error} />}
      {asks && (
        <Confirm title={`Remove ${name}?`} label="Remove" acting={removing} onConfirm={() => removing.mutate()} onClose={() => setAsks(false)}>
          <p>They lose all access to this workspace at once. Their files stay.</p>
        </Confirm>
      )}
    </li>
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
        <Field label="Name at the issuer" hint="The name that is in their tokens, mostly an e-mail address."><input value={subject} required onChange={event => change({subject: event.target.value})} /></Field>
        <Field label="Role"><select value={role} onChange={event => change({role: event.target.value as Schemas['Role']})}>{ROLES.map(one => <option key={one}>{one}</option>)}</select></Field>
        {adding.isError && <Failure error={adding.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={adding.isPending || subject.trim() === ''}>Add</Button></div>
      </form>
    </Dialog>
  );
}

function Keys() {
  const [isMaking, setMaking] = useView('key', false);
  // A dialog that is closed while the key is made does not take its text along.
  const [secret, setSecret] = useState<string>();
  const keys = usePages({
    queryKey: ['keys'],
    read: (cursor, signal) => hub.get('/api/v1/keys', {query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.keys.filter(key => !key.revoked_at),
  });
  const list = keys.items;
  return (
    <section>
      <header className="page-head"><h2>Your API keys</h2><span className="spacer" /><Button icon="plus" onClick={() => setMaking(true)}>New key</Button></header>
      {keys.isPending && <Loading what="your keys" />}
      {keys.isError && <Failure error={keys.error} retry={() => void keys.refetch()} />}
      {list?.length === 0 && !keys.hasNextPage && <p className="faint">You have none. A program uses a key where a person signs in.</p>}
      {list && list.length > 0 && (
        <ul className="rows-list">
          {list.map(key => <ApiKey key={key.key_id} apiKey={key} />)}
        </ul>
      )}
      <More list={keys} />
      {isMaking && <MakeKey onClose={() => setMaking(false)} onSecret={setSecret} />}
      {secret !== undefined && <Secret title="Your new key" name="The key" secret={secret} onClose={() => setSecret(undefined)} />}
    </section>
  );
}

function ApiKey({apiKey: {key_id: id, name, scopes, expires_at: until}}: {apiKey: Schemas['ApiKey']}) {
  const [asks, setAsks] = useState(false);
  const revoking = useMutation({
    mutationFn: () => hub.delete('/api/v1/keys/{key_id}', {path: {key_id: id}}),
    onSuccess: () => { setAsks(false); refreshSoon(['keys']); },
  });
  return (
    <li className="list-row">
      <Icon name="lock" />
      <span className="grow stacked"><strong>{name}</strong><span className="faint">{scopes.join(', ')}</span></span>
      <span className="faint">{until ? <>expires <Ago at={until} /></> : 'does not expire'}</span>
      <Button className="small" look="danger" aria-label={`Revoke ${name}`} onClick={() => setAsks(true)}>Revoke</Button>
      {asks && (
        <Confirm title={`Revoke ${name}?`} label="Revoke" acting={revoking} onConfirm={() => revoking.mutate()} onClose={() => setAsks(false)}>
          <p>Programs that use this key are refused from now on. A revoked key does not come back.</p>
        </Confirm>
      )}
    </li>
  );
}

function MakeKey({onClose, onSecret}: {onClose: () => void; onSecret: (secret: string) => void}) {
  const [{name, scopes, days}, change, clear] = useFields('key', {name: '', scopes: ['read', 'converse'] as Schemas['Action'][], days: '30'});
  const making = useMutation({
    mutationFn: () => hub.post('/api/v1/keys', {
      body: {name: name.trim(), scopes, ...(days === '' ? {} : {expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString()})},
    }),
    onSuccess: made => {
      clear();
      refreshSoon(['keys']);
      onClose();
      onSecret(made.key);
    },
  });
  const toggle = (scope: Schemas['Action']) => change({scopes: scopes.includes(scope) ? scopes.filter(one => one !== scope) : [...scopes, scope]});
  return (
    <Dialog title="New key" onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); making.mutate(); }}>
        <Field label="Name"><input value={name} required maxLength={100} onChange={event => change({name: event.target.value})} /></Field>
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
