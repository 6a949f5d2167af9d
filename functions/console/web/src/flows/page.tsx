/** Flows: the list, a flow with its check and its form, and a task on the graph of its flow. */
import {useQuery} from '@tanstack/react-query';
import {hub, type Schemas} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {usePages} from '../paged.ts';
import {href, type Place} from '../router.ts';
import {Ago, Badge, counted, Empty, Failure, Loading, More} from '../ui.tsx';
import {CompareView} from './compare.tsx';
import {EvaluationsView} from './evaluations.tsx';
import {FlowView} from './flow.tsx';
import {TaskView} from './task.tsx';

export default function FlowsPage({workspace, place}: {workspace: string; place: Place}) {
  const [flow, task] = place.rest;
  const other = place.query.get('with');
  if (flow !== undefined && task !== undefined && other !== null) return <CompareView key={`${task} ${other}`} workspace={workspace} name={flow} task={task} other={other} />;
  if (flow !== undefined && task !== undefined) return <TaskView key={task} workspace={workspace} name={flow} task={task} />;
  if (flow !== undefined && place.query.get('view') === 'evaluations') return <EvaluationsView key={flow} workspace={workspace} name={flow} />;
  if (flow !== undefined) return <FlowView key={flow} workspace={workspace} name={flow} />;
  return <FlowList workspace={workspace} />;
}

function FlowList({workspace}: {workspace: string}) {
  const flows = useQuery({
    queryKey: [workspace, 'flows'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/flows', {path: {workspace_id: workspace}, signal}),
  });
  return (
    <div className="page">
      <header className="page-head"><h1>Flows</h1></header>
      <p className="lead">A flow is a graph of agents, tools, commands and people, written in YAML below <code>/system/flows</code>.</p>
      {flows.isPending && <Loading what="the flows" />}
      {flows.isError && <Failure error={flows.error} retry={() => void flows.refetch()} />}
      {flows.data?.flows.length === 0 && <Empty icon="flow" title="There are no flows yet" />}
      {flows.data && flows.data.flows.length > 0 && (
        <ul className="rows-list">
          {flows.data.flows.map(flow => (
            <li key={flow.name}>
              <a href={href(workspace, 'flows', [flow.name])}>
                <Icon name="flow" />
                <span className="grow stacked"><strong>{flow.name}</strong>{flow.description && <span className="faint">{flow.description}</span>}</span>
                {flow.built_in && <Badge>in the box</Badge>}
                {flow.faults > 0 && <Badge tone="bad">{counted(flow.faults, 'fault')}</Badge>}
                <span className="faint">{counted(flow.nodes, 'node')}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
      <h2>Latest runs</h2>
      <TaskList workspace={workspace} />
    </div>
  );
}

/** The runs of a flow, or of all, the latest first. */
export function useTasks(workspace: string, flow: string | undefined) {
  return usePages({
    queryKey: [workspace, 'tasks', 'pages', flow ?? ''],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/tasks', {path: {workspace_id: workspace}, query: {limit: 30, ...(flow ? {flow} : {}), ...cursor}, signal}),
    itemsOf: page => page.tasks,
  });
}

export function TaskList({workspace, flow}: {workspace: string; flow?: string}) {
  const tasks = useTasks(workspace, flow);
  const failure = tasks.isError && <Failure error={tasks.error} retry={() => void tasks.refetch()} />;
  if (tasks.isPending) return <Loading what="the runs" />;
  if (!tasks.items) return failure;
  if (tasks.items.length === 0 && !tasks.hasNextPage) return <>{failure}<p className="faint">Nothing was run yet.</p></>;
  return (
    <>
      {failure}
      <ul className="rows-list">
        {tasks.items.map(task => (
          <li key={task.task_id}>
            <a href={href(workspace, 'flows', [task.flow.name, task.task_id])}>
              <Icon name="play" size={16} />
              <span className="grow">{flow ? task.task_id.slice(-12) : task.flow.name}</span>
              <TaskBadge task={task} />
              <span className="faint"><Ago at={task.finished_at ?? task.created_at} /></span>
            </a>
          </li>
        ))}
      </ul>
      <More list={tasks} />
    </>
  );
}

type State = Pick<Schemas['Task'], 'phase' | 'status' | 'waiting_for' | 'agent_waits' | 'wait'>;
const WAITS: Record<string, string> = {backoff: 'waits for its next try', slots: 'waits for its turn', budget: 'waits for its budget', place: 'waits for its machine'};

/** The state of a run in words, and its outcome once it has ended: before that its status says nothing. */
export function stateOf({phase, status, waiting_for: asked, agent_waits: agentWaits, wait}: State): string {
  if (phase === 'finished') return status;
  if (phase !== 'suspended') return phase;
  if ((asked ?? []).length > 0) return 'waits for a person';
  if (agentWaits) return 'its agent waits for a person';
  return wait ? WAITS[wait.reason] ?? 'waits' : 'waits for its agent';
}

export function TaskBadge({task}: {task: State}) {
  if (task.phase !== 'finished' && ((task.waiting_for ?? []).length > 0 || task.agent_waits)) return <Badge tone="ask">needs you</Badge>;
  if (task.phase === 'finished') return task.status === 'success' ? <Badge tone="good">success</Badge> : <Badge tone="bad">{task.status}</Badge>;
  if (task.phase === 'paused' || task.phase === 'parked') return <Badge tone="ask">{task.phase}</Badge>;
  return <Badge tone="busy">{stateOf(task)}</Badge>;
}
