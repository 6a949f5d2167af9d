/** The deliveries of a webhook: each event with its state and its attempts. */
import {useMutation, useQuery} from '@tanstack/react-query';
import {isGone} from '../chat/live.ts';
import {Json} from '../flows/json.tsx';
import {hub, refreshSoon, type Schemas} from '../hub.ts';
import {usePages} from '../paged.ts';
import {href} from '../router.ts';
import {useTitle} from '../title.ts';
import {Ago, Badge, Button, duration, Empty, Failure, Loading, More} from '../ui.tsx';

type Delivery = Schemas['WebhookDelivery'];

const REASONS: Record<Schemas['WebhookDisabledBecause'], string> = {
  person: 'paused', gone: 'the receiver is gone (410)', failing: 'paused: it failed for five days',
};

/** Whether the receiver is told anything, and whether it takes it. */
export function HookBadge({hook}: {hook: Schemas['Webhook']}) {
  if (hook.disabled) return <Badge tone={hook.disabled.because === 'person' ? 'ask' : 'bad'}>{REASONS[hook.disabled.because]}</Badge>;
  if (hook.failing_since) return <Badge tone="bad">fails since <Ago at={hook.failing_since} /></Badge>;
  return <Badge tone="good">active</Badge>;
}

export function Deliveries({workspace, id}: {workspace: string; id: string}) {
  const path = {workspace_id: workspace, webhook_id: id};
  const hook = useQuery({
    queryKey: [workspace, 'webhooks', id],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}', {path, signal}),
  });
  const deliveries = usePages({
    queryKey: [workspace, 'webhooks', id, 'deliveries'],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries', {path, query: {limit: 50, ...cursor}, signal}),
    itemsOf: page => page.deliveries,
    again: () => 5_000,
  });
  const testing = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test', {path}),
    onSuccess: () => refreshSoon([workspace, 'webhooks', id]),
  });
  useTitle(hook.data?.name);
  if (isGone(hook.error)) return <Empty icon="hook" title="This webhook is not there"><a className="button" href={href(workspace, 'webhooks')}>To the webhooks</a></Empty>;
  const list = deliveries.items;
  return (
    <div className="page">
      <header className="page-head">
        <nav className="crumbs" aria-label="Path"><a href={href(workspace, 'webhooks')}>Webhooks</a><span><span aria-hidden="true"> / </span><h1>{hook.data?.name ?? '…'}</h1></span></nav>
        {hook.data && <HookBadge hook={hook.data} />}
        <span className="spacer" />
        <Button icon="send" onClick={() => testing.mutate()} disabled={testing.isPending}>Send a test</Button>
      </header>
      {hook.isError && <Failure error={hook.error} retry={() => void hook.refetch()} />}
      {testing.isError && <Failure error={testing.error} />}
      {deliveries.isPending && <Loading what="the deliveries" />}
      {deliveries.isError && <Failure error={deliveries.error} retry={() => void deliveries.refetch()} />}
      {list?.length === 0 && <Empty icon="hook" title="Nothing was sent yet"><p>Deliveries of the last 30 days are listed here. A test shows whether the receiver answers.</p></Empty>}
      {list && list.length > 0 && <ul className="rows-list" aria-label="Deliveries">{list.map(one => <Row key={one.delivery_id} workspace={workspace} delivery={one} />)}</ul>}
      <More list={deliveries} />
    </div>
  );
}

const TONES = {pending: 'busy', delivered: 'good', failed: 'bad'} as const;

/** The answer to an attempt, in a few words. */
const answered = ({status, error}: Schemas['WebhookAttempt']): string => [status, error].filter(one => one !== undefined && one !== null).join(': ') || 'no answer';

function Row({workspace, delivery}: {workspace: string; delivery: Delivery}) {
  const {webhook_id, delivery_id, type, status, attempts, attempts_made: made, next_at: next, given_up: why} = delivery;
  const retrying = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry', {path: {workspace_id: workspace, webhook_id, delivery_id}}),
    onSuccess: () => refreshSoon([workspace, 'webhooks', webhook_id]),
  });
  const last = attempts.at(-1);
  return (
    <li className="delivery">
      <details>
        <summary>
          <span className="grow stacked"><strong>{type}</strong><span className="faint">{last ? answered(last) : 'not tried yet'}</span></span>
          <Badge tone={TONES[status]}>{status}</Badge>
          <span className="faint"><Ago at={delivery.timestamp} /></span>
        </summary>
        <div className="delivery-body">
          <p className="faint mono">{delivery.message_id}</p>
          {why && <p className="fault">Given up: {why}</p>}
          {status === 'pending' && next && made > 0 && <p className="faint">Tried again <Ago at={next} />.</p>}
          {made > attempts.length && <p className="faint">The last {attempts.length} of {made} attempts.</p>}
          {attempts.length > 0 && (
            <div className="scroll" tabIndex={0} role="region" aria-label="Attempts">
              <table className="wide">
                <thead><tr><th>When</th><th>Answer</th><th className="number">Time</th></tr></thead>
                <tbody>{attempts.map((one, at) => <tr key={at}><td><Ago at={one.at} /></td><td>{answered(one)}</td><td className="number">{duration(one.duration_ms)}</td></tr>)}</tbody>
              </table>
            </div>
          )}
          <Json value={delivery.data} name="What was sent" />
          {retrying.isError && <Failure error={retrying.error} />}
          <div className="card-foot"><Button icon="send" onClick={() => retrying.mutate()} disabled={retrying.isPending}>Send again</Button></div>
        </div>
      </details>
    </li>
  );
}
