/** Two runs of a flow side by side: both graphs, the first place where the runs part, and the work of each node. */
import {useQuery} from '@tanstack/react-query';
import {lazy, Suspense} from 'react';
import {hub, type Schemas} from '../hub.ts';
import {href} from '../router.ts';
import {Badge, Button, count, duration, Empty, Failure, Loading, money, More} from '../ui.tsx';
import {useTitle} from '../title.ts';
import {Json} from './json.tsx';
import {useFlow} from './flow.tsx';
import {stateOf, TaskBadge, useTasks} from './page.tsx';
import {useRun} from './run.ts';

const Graph = lazy(() => import('./graph.tsx'));

const PARTS: Record<Schemas['DivergenceKind'], string> = {
  input: 'was given different inputs', output: 'gave different outputs', status: 'ended differently', denial: 'was denied in one of them',
  route: 'took different ways', fork: 'made different clones or subtasks', merge: 'merged differently', end: 'came to different ends',
};

function useTask(workspace: string, task: string) {
  return useQuery({
    queryKey: [workspace, 'tasks', 'one', task],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/tasks/{task_id}', {path: {workspace_id: workspace, task_id: task}, signal}),
  });
}

export function CompareView({workspace, name, task, other}: {workspace: string; name: string; task: string; other: string}) {
  const flow = useFlow(workspace, name);
  useTitle(`Two runs of ${name}`);
  const [one, two] = [useTask(workspace, task), useTask(workspace, other)];
  const [a, b] = [useRun(workspace, task), useRun(workspace, other)];
  const diff = useQuery({
    // A run that ends is compared anew.
    queryKey: [workspace, 'tasks', 'diff', task, other, a.run.end?.status, b.run.end?.status],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff', {path: {workspace_id: workspace, task_id: task}, query: {with: other}, signal}),
  });
  const differ = new Set(Object.entries(diff.data?.nodes ?? {}).filter(([, node]) => !node.same).map(([id]) => id));
  return (
    <div className="flow-page">
      <header className="page-head">
        <nav className="crumbs" aria-label="Path">
          <a href={href(workspace, 'flows')}>Flows</a><span><span aria-hidden="true"> / </span><a href={href(workspace, 'flows', [name])}>{name}</a></span>
          <span><span aria-hidden="true"> / </span><h1>Two runs</h1></span>
        </nav>
        <span className="spacer" />
        <a className="button" href={href(workspace, 'flows', [name, other], {with: task})}>Swap</a>
      </header>
      <div className="compare">
        {[one, two, flow].map((query, key) => query.isError && <Failure key={key} error={query.error} retry={() => void query.refetch()} />)}
        {[a, b].map((run, key) => run.error !== undefined && <Failure key={key} error={run.error} />)}
        <div className="compare-runs">
          {([[task, one.data, a.run], [other, two.data, b.run]] as const).map(([id, view, run], at) => (
            <section key={id} aria-label={at === 0 ? 'The first run' : 'The second run'}>
              <h2><a href={href(workspace, 'flows', [name, id])}>Run {id.slice(-6)}</a> {view && <TaskBadge task={view} />} {run.replay && <span className="faint">replays {run.replay.of.slice(-6)}{run.replay.from ? ` from ${run.replay.from}` : ''}</span>}</h2>
              {flow.data && <Suspense fallback={<Loading what="the graph" />}><Graph id={`run-${at}`} flow={flow.data} run={run} marked={differ} /></Suspense>}
            </section>
          ))}
        </div>
        <div className="page">
          {diff.isPending && <Loading what="the comparison" />}
          {diff.isError && <Failure error={diff.error} retry={() => void diff.refetch()} />}
          {diff.data && <Difference diff={diff.data} order={flow.data?.nodes.map(node => node.id) ?? []} />}
        </div>
      </div>
    </div>
  );
}

function Difference({diff, order}: {diff: Schemas['TaskDiff']; order: string[]}) {
  const {parts} = diff;
  const nodes = Object.entries(diff.nodes).sort(([one], [other]) => order.indexOf(one) - order.indexOf(other));
  return (
    <>
      <h2>Where they part</h2>
      {!parts && <Empty icon="check" title="The runs do not part"><p>Each node that ran in both gave the same.</p></Empty>}
      {parts && (
        <section className="card parting" aria-label="Where they part">
          <p><strong>{parts.node ? <code>{parts.node}</code> : 'The task'} {PARTS[parts.what]}.</strong>{parts.task !== '' && <> In the task <code>{parts.task}</code>.</>}</p>
          {(parts.differences ?? []).length > 0
            ? (
              <table className="wide">
                <thead><tr><th>Place</th><th>First run</th><th>Second run</th></tr></thead>
                <tbody>{parts.differences!.map(one => <tr key={one.path}><td><code>{one.path || '/'}</code></td><td><Value value={one.a} /></td><td><Value value={one.b} /></td></tr>)}</tbody>
              </table>
            )
            : <div className="compare-runs"><Json value={parts.a} name="The first run's" /><Json value={parts.b} name="The second run's" /></div>}
        </section>
      )}
      <h2>What each node did</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="What each node did">
        <table className="wide">
          <thead><tr><th>Node</th><th>Result</th><th className="number">Runs</th><th className="number">Time</th><th className="number">Tokens</th><th className="number">Cost</th></tr></thead>
          <tbody>
            {nodes.map(([id, {a, b, same}]) => (
              <tr key={id}>
                <td>{id}</td>
                <td>{same ? <Badge>same</Badge> : <Badge tone="busy">differs</Badge>}</td>
                <td className="number">{pair(a.runs, b.runs, count)}</td>
                <td className="number">{pair(a.duration_ms, b.duration_ms, duration)}</td>
                <td className="number">{pair(a.tokens, b.tokens, count)}</td>
                <td className="number">{pair(a.cost_usd, b.cost_usd, money)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function pair(a: number, b: number, text: (value: number) => string): string {
  return text(a) === text(b) ? text(a) : `${text(a)} → ${text(b)}`;
}

function Value({value}: {value: unknown}) {
  return value === undefined ? <span className="faint">not there</span> : <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>;
}

/** The choice of the run to compare with, among those of the same flow. */
export function CompareWith({workspace, name, task, onChoose}: {workspace: string; name: string; task: string; onChoose: (other: string) => void}) {
  const tasks = useTasks(workspace, name);
  const others = tasks.items?.filter(one => one.task_id !== task);
  return (
    <>
      {tasks.isPending && <Loading what="the runs" />}
      {tasks.isError && <Failure error={tasks.error} retry={() => void tasks.refetch()} />}
      {others?.length === 0 && !tasks.hasNextPage && <p className="faint">There is no other run of this flow.</p>}
      {others && others.length > 0 && (
        <form className="inline-form" onSubmit={event => { event.preventDefault(); onChoose(String(new FormData(event.currentTarget).get('other'))); }}>
          <select name="other" aria-label="The other run">
            {others.map(one => <option key={one.task_id} value={one.task_id}>{`${one.task_id.slice(-6)}, ${new Date(one.created_at).toLocaleString()}, ${stateOf(one)}`}</option>)}
          </select>
          <Button type="submit" className="small">Compare</Button>
        </form>
      )}
      <More list={tasks} label="Older runs" />
    </>
  );
}
