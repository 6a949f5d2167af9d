import {useQuery} from '@tanstack/react-query';
import {hub, isRefused, useLink} from '../hub.ts';
import {Badge, bytes, count, counted, Failure, Loading} from '../ui.tsx';

/** The state of the hub, of the connection to it, and of the parts that a workspace uses. */
export default function HealthPage({workspace}: {workspace: string}) {
  const link = useLink();
  const ready = useQuery({queryKey: ['ready'], queryFn: ({signal}) => hub.get('/ready', {signal}), refetchInterval: 5_000});
  const models = useQuery({queryKey: ['models'], queryFn: ({signal}) => hub.get('/api/v1/models', {signal})});
  const sandbox = useQuery({
    queryKey: [workspace, 'sandbox'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/sandbox', {path: {workspace_id: workspace}, signal}),
    refetchInterval: 5_000,
  });
  const degraded = Object.entries(ready.data?.degraded ?? {});
  const available = models.data?.models.filter(model => model.available) ?? [];
  return (
    <div className="page">
      <header className="page-head"><h1>Health</h1><span className="spacer" /><a className="button" href="#/reference">API reference</a></header>
      {ready.isPending && <Loading what="the state of the hub" />}
      {ready.isError && <Failure error={ready.error} retry={() => void ready.refetch()} />}
      <ul className="rows-list">
        {ready.data && (
          <li className="list-row">
            <span className="grow">Hub, version {ready.data.version}</span>
            <Badge tone={ready.data.status === 'ready' && degraded.length === 0 ? 'good' : 'bad'}>{degraded.length > 0 ? 'degraded' : ready.data.status}</Badge>
          </li>
        )}
        {degraded.map(([part, why]) => <li key={part} className="list-row"><span className="grow">{part}: {why}</span><Badge tone="bad">degraded</Badge></li>)}
        <li className="list-row"><span className="grow">Streams of this page</span><Badge tone={link === 'online' ? 'good' : 'bad'}>{link}</Badge></li>
        {models.data && (
          <li className="list-row">
            <span className="grow">{models.data.configured ? `${counted(available.length, 'model')} can be asked` : models.data.note ?? 'No model is configured.'}</span>
            <Badge tone={models.data.configured ? 'good' : 'ask'}>{models.data.configured ? 'configured' : 'demo'}</Badge>
          </li>
        )}
        {sandbox.data && <li className="list-row"><span className="grow">Sandbox of this workspace</span><Badge tone={sandbox.data.state === 'failed' ? 'bad' : 'neutral'}>{sandbox.data.state}</Badge></li>}
      </ul>
      {sandbox.isError && <Failure error={sandbox.error} />}
      <Counters />
    </div>
  );
}

/** The counters of the hub that tell whether work gets stuck: their names in `/metrics`, and for people. */
const COUNTERS: [title: string, counters: [name: string, words: string, isBad?: boolean][]][] = [
  ['Queue', [['buildscale_queue_waiting', 'waiting'], ['buildscale_queue_in_flight', 'in work'], ['buildscale_queue_dead', 'dead letters', true]]],
  ['Actors', [['buildscale_actors_running', 'running'], ['buildscale_actors_warm', 'warm'], ['buildscale_deliveries_retried_total', 'tried again']]],
  ['Streams', [['buildscale_streams', 'open'], ['buildscale_connections', 'connections'], ['buildscale_stream_stalled_total', 'stalled']]],
];

/** The hub as a whole, for its operator: the numbers are about everybody. */
function Counters() {
  const metrics = useQuery({
    queryKey: ['metrics'],
    queryFn: async ({signal}) => {
      const text = await (await hub.read('/metrics', {signal})).text();
      return new Map([...text.matchAll(/^(\w+) ([\d.e+]+)$/gm)].map(([, name, value]) => [name!, Number(value)]));
    },
    refetchInterval: 5_000,
  });
  if (isRefused(metrics.error, 'FORBIDDEN')) return <p className="faint">The operator of this hub sees its queue, its actors and its streams here.</p>;
  if (metrics.isError) return <Failure error={metrics.error} retry={() => void metrics.refetch()} />;
  if (!metrics.data) return null;
  const memory = metrics.data.get('process_resident_memory_bytes');
  return (
    <section aria-label="The hub as a whole">
      <h2>The hub as a whole</h2>
      <dl className="tiles">
        {COUNTERS.map(([title, counters]) => (
          <div className="tile" key={title}>
            <dt>{title}</dt>
            {counters.map(([name, words, isBad]) => {
              const value = metrics.data.get(name) ?? 0;
              return <dd key={name} className={`counter ${isBad && value > 0 ? 'fault' : ''}`}><strong>{count(value)}</strong> {words}</dd>;
            })}
          </div>
        ))}
        {memory !== undefined && <div className="tile"><dt>Memory</dt><dd>{bytes(memory)}</dd></div>}
      </dl>
    </section>
  );
}
