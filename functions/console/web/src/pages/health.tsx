import {useQuery} from '@tanstack/react-query';
import {hub, useLink} from '../hub.ts';
import {Badge, Failure, Loading} from '../ui.tsx';

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
      <header className="page-head"><h1>Health</h1></header>
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
            <span className="grow">{models.data.configured ? `${available.length} models can be asked` : models.data.note ?? 'No model is configured.'}</span>
            <Badge tone={models.data.configured ? 'good' : 'ask'}>{models.data.configured ? 'configured' : 'demo'}</Badge>
          </li>
        )}
        {sandbox.data && <li className="list-row"><span className="grow">Sandbox of this workspace</span><Badge tone={sandbox.data.state === 'failed' ? 'bad' : 'neutral'}>{sandbox.data.state}</Badge></li>}
      </ul>
      {sandbox.isError && <Failure error={sandbox.error} />}
    </div>
  );
}
