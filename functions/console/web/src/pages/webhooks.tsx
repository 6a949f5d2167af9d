/** Webhooks: the receivers that are told what happens here. */
import {useMutation, useQuery} from '@tanstack/react-query';
import {useState} from 'react';
import {hub, refreshSoon, type Schemas} from '../hub.ts';
import {useRights} from '../rights.ts';
import {href, type Place} from '../router.ts';
import {useFields, useView} from '../store.ts';
import {Button, Confirm, Dialog, Empty, Failure, Field, IconButton, Loading} from '../ui.tsx';
import {Deliveries, HookBadge} from './deliveries.tsx';
import {Secret} from './secret.tsx';

type Webhook = Schemas['Webhook'];
const useWebhooks = (workspace: string, enabled: boolean) => useQuery({
  queryKey: [workspace, 'webhooks'],
  enabled,
  queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/webhooks', {path: {workspace_id: workspace}, signal}),
  refetchInterval: 15_000,
});

export default function WebhooksPage({workspace, place}: {workspace: string; place: Place}) {
  const {may, isKnown, isAsked} = useRights(workspace);
  const [isMaking, setMaking] = useView(`webhook/${workspace}`, false);
  const [secret, setSecret] = useState<string>();
  const hooks = useWebhooks(workspace, !isAsked && may('administer'));
  if (isKnown && !may('administer')) {
    return <Empty icon="lock" title="Webhooks are for admins"><p>They tell other services what happens in this workspace. Ask an admin of it.</p></Empty>;
  }
  const chosen = place.rest[0];
  const list = hooks.data?.webhooks;
  if (chosen !== undefined) return <Deliveries key={chosen} workspace={workspace} id={chosen} />;
  return (
    <div className="page">
      <header className="page-head">
        <h1>Webhooks</h1>
        <span className="spacer" />
        <Button icon="plus" look="primary" onClick={() => setMaking(true)}>New webhook</Button>
      </header>
      <p className="lead">A webhook tells a service of yours about the ends of turns and tasks, and about what waits for people.</p>
      {hooks.isPending && <Loading what="the webhooks" />}
      {hooks.isError && <Failure error={hooks.error} retry={() => void hooks.refetch()} />}
      {list?.length === 0 && <Empty icon="hook" title="Nobody is told anything"><p>Add the address of a receiver. Each event is a signed POST, and is tried for a day.</p></Empty>}
      {list && list.length > 0 && <ul className="rows-list">{list.map(hook => <Row key={hook.webhook_id} workspace={workspace} hook={hook} onSecret={setSecret} />)}</ul>}
      {isMaking && <Make workspace={workspace} onClose={() => setMaking(false)} onSecret={setSecret} />}
      {secret !== undefined && <Secret title="Your new secret" name="The secret" secret={secret} onClose={() => setSecret(undefined)}><p>The receiver checks signatures with it.</p></Secret>}
    </div>
  );
}

function Row({workspace, hook, onSecret}: {workspace: string; hook: Webhook; onSecret: (secret: string) => void}) {
  const [asks, setAsks] = useState<'rotate' | 'remove'>();
  const path = {workspace_id: workspace, webhook_id: hook.webhook_id};
  const again = () => refreshSoon([workspace, 'webhooks']);
  const telling = useMutation({
    mutationFn: async (word: 'test' | 'pause' | 'resume') => {
      if (word === 'test') await hub.post('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test', {path});
      else await hub.patch('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}', {path, body: {enabled: word === 'resume'}});
    },
    onSuccess: again,
  });
  const removing = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}', {path}),
    onSuccess: () => { setAsks(undefined); again(); },
  });
  const rotating = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret', {path}),
    onSuccess: made => { setAsks(undefined); onSecret(made.secret); again(); },
  });
  const {name, url, events, chat_id: chat, flow} = hook;
  const only = chat ? ' · of one chat' : flow ? ` · of the flow ${flow}` : '';
  return (
    <li className="list-row wrap">
      <span className="grow stacked">
        <a href={href(workspace, 'webhooks', [hook.webhook_id])}><strong>{name}</strong></a>
        <span className="faint mono" title={url}>{url}</span>
        <span className="faint">{events.join(', ')}{only}</span>
      </span>
      <HookBadge hook={hook} />
      <span className="row-buttons">
        <IconButton label={`Test ${name}`} icon="send" onClick={() => telling.mutate('test')} disabled={telling.isPending} />
        {hook.enabled
          ? <IconButton label={`Pause ${name}`} icon="pause" onClick={() => telling.mutate('pause')} disabled={telling.isPending} />
          : <IconButton label={`Resume ${name}`} icon="play" onClick={() => telling.mutate('resume')} disabled={telling.isPending} />}
        <IconButton label={`New secret for ${name}`} icon="key" onClick={() => setAsks('rotate')} />
        <IconButton label={`Remove ${name}`} icon="trash" onClick={() => setAsks('remove')} />
      </span>
      {telling.isError && <Failure error={telling.error} />}
      {asks === 'rotate' && (
        <Dialog title={`A new secret for ${name}?`} onClose={() => setAsks(undefined)}>
          <p>The present secret signs beside the new one for 24 hours, so that the receiver can change over.</p>
          {rotating.isError && <Failure error={rotating.error} />}
          <div className="dialog-foot"><Button look="primary" onClick={() => rotating.mutate()} disabled={rotating.isPending}>Make a new secret</Button></div>
        </Dialog>
      )}
      {asks === 'remove' && (
        <Confirm title={`Remove ${name}?`} label="Remove" acting={removing} onConfirm={() => removing.mutate()} onClose={() => setAsks(undefined)}>
          <p>Its deliveries go along, also those that still wait.</p>
        </Confirm>
      )}
    </li>
  );
}

type EventType = Exclude<Schemas['WebhookEventType'], 'webhook.test' | 'event.lost'>;
const EVENTS: [type: EventType, words: string][] = [
  ['turn.ended', 'A turn has ended'], ['task.ended', 'A task has ended'], ['question.asked', 'Somebody is asked a question'],
  ['permission.asked', 'A permission is asked for'], ['plan.submitted', 'A plan waits for approval'],
];

function Make({workspace, onClose, onSecret}: {workspace: string; onClose: () => void; onSecret: (secret: string) => void}) {
  const [{name, url, events, flow}, change, clear] = useFields(`${workspace}/webhook`, {name: '', url: '', events: ['turn.ended', 'task.ended'] as EventType[], flow: ''});
  const flows = useQuery({
    queryKey: [workspace, 'flows'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/flows', {path: {workspace_id: workspace}, signal}),
  });
  const making = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/webhooks', {
      path: {workspace_id: workspace}, body: {name: name.trim(), url: url.trim(), events, ...(flow === '' ? {} : {flow})},
    }),
    onSuccess: made => {
      clear();
      refreshSoon([workspace, 'webhooks']);
      onClose();
      onSecret(made.secret);
    },
  });
  const toggle = (type: EventType) => change({events: events.includes(type) ? events.filter(one => one !== type) : [...events, type]});
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); making.mutate(); }}>
        <Field label="Name"><input value={name} required maxLength={100} onChange={event => change({name: event.target.value})} /></Field>
        <Field label="Address" hint="Events are posted there.">
          <input className="mono" type="url" value={url} required maxLength={2048} placeholder="https://example.com/hooks" onChange={event => change({url: event.target.value})} />
        </Field>
        <fieldset className="field scopes">
          <legend className="field-label">Events</legend>
          {EVENTS.map(([type, words]) => <label key={type} className="check-line"><input type="checkbox" checked={events.includes(type)} onChange={() => toggle(type)} /> <span>{words} <span className="faint mono">{type}</span></span></label>)}
        </fieldset>
        <Field label="Only of a flow (optional)">
          <select value={flow} onChange={event => change({flow: event.target.value})}>
            <option value="">Of all chats and tasks</option>
            {flow !== '' && !flows.data?.flows.some(one => one.name === flow) && <option>{flow}</option>}
            {flows.data?.flows.map(one => <option key={one.name}>{one.name}</option>)}
          </select>
        </Field>
        {making.isError && <Failure error={making.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={making.isPending || name.trim() === '' || url.trim() === '' || events.length === 0}>Make it</Button></div>
      </form>
    </Dialog>
  );
}
