/** A task on the graph of its flow, painted while it runs. */
import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {lazy, Suspense, useState} from 'react';
import {isGone} from '../chat/live.ts';
import {hub} from '../hub.ts';
import {useOnce} from '../once.ts';
import {useRights} from '../rights.ts';
import {go, href, useChoice} from '../router.ts';
import {useTitle} from '../title.ts';
import {Button, count, Dialog, duration, Empty, Failure, Labels, Loading, money} from '../ui.tsx';
import {AskForm} from './ask.tsx';
import {CompareWith} from './compare.tsx';
import type {NodeState} from './fold.ts';
import {useFlow} from './flow.tsx';
import {Json} from './json.tsx';
import {TaskBadge} from './page.tsx';
import {useRun} from './run.ts';
import {Waits} from './waits.tsx';

const TakeBack = lazy(() => import('../files/takeback.tsx').then(made => ({default: made.TakeBack})));
const Graph = lazy(() => import('./graph.tsx'));

export function TaskView({workspace, name, task}: {workspace: string; name: string; task: string}) {
  const client = useQueryClient();
  const flow = useFlow(workspace, name);
  const {may} = useRights(workspace);
  const {run, error} = useRun(workspace, task);
  const [chosen, setChosen] = useChoice('node');
  const [takesBack, setTakesBack] = useState(false);
  const path = {workspace_id: workspace, task_id: task};
  useTitle(`Run ${task.slice(-6)} of ${name}`);
  const view = useQuery({
    queryKey: [workspace, 'tasks', 'one', task],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/tasks/{task_id}', {path, signal}),
  });
  const again = () => client.invalidateQueries({queryKey: [workspace, 'tasks']});
  const telling = useMutation({
    mutationFn: async (word: 'stop' | 'pause' | 'resume' | 'step') => {
      if (word === 'stop') await hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop', {path});
      if (word === 'pause') await hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause', {path, body: {}});
      if (word === 'resume') await hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume', {path, body: {}});
      if (word === 'step') await hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/step', {path});
    },
    onSuccess: again,
  });
  const once = useOnce();
  const retrying = useMutation({
    mutationFn: () => once('retry', idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry', {path, body: {}, idempotencyKey})),
    onSuccess: made => go(href(workspace, 'flows', [name, made.task_id])),
  });
  const replaying = useMutation({
    mutationFn: (from: string | undefined) => once(['replay', from], idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay', {path, body: from === undefined ? {} : {from}, idempotencyKey})),
    onSuccess: async made => {
      await again();
      go(href(workspace, 'flows', [name, task], {with: made.task_id}));
    },
  });
  if (isGone(view.error)) return <Empty icon="flow" title="This run is not there"><p>It was deleted, or it belongs to somebody else.</p><a className="button" href={href(workspace, 'flows', [name])}>To its flow</a></Empty>;
  if (view.isPending) return <Loading what="the run" />;
  // A run that is shown stays when it could not be read once more.
  if (!view.data) return <div className="page"><Failure error={view.error} retry={() => void view.refetch()} /></div>;
  const {phase, usage, usage_below: below, budget, steps, children, parked_reason: parked} = view.data;
  // A budget is for the agents of the run and of all below it.
  const spent = {tokens: usage.input_tokens + usage.output_tokens + (below?.input_tokens ?? 0) + (below?.output_tokens ?? 0), cost: usage.cost_usd + (below?.cost_usd ?? 0)};
  const isOver = phase === 'finished';
  const isPaused = phase === 'paused' || phase === 'parked' || run.paused !== undefined;
  const node = chosen === undefined ? undefined : run.nodes.get(chosen);
  return (
    <div className="flow-page">
      <header className="page-head">
        <nav className="crumbs" aria-label="Path">
          <a href={href(workspace, 'flows')}>Flows</a><span><span aria-hidden="true"> / </span><a href={href(workspace, 'flows', [name])}>{name}</a></span>
          <span><span aria-hidden="true"> / </span><h1>Run {task.slice(-6)}</h1></span>
        </nav>
        <TaskBadge task={view.data} />
        <span className="spacer" />
        {may('run') && !isOver && <>
          {isPaused
            ? <><Button icon="play" onClick={() => telling.mutate('resume')} disabled={telling.isPending}>Resume</Button><Button icon="right" onClick={() => telling.mutate('step')} disabled={telling.isPending}>Step</Button></>
            : <Button icon="pause" onClick={() => telling.mutate('pause')} disabled={telling.isPending}>Pause</Button>}
          <Button look="danger" icon="stop" onClick={() => telling.mutate('stop')} disabled={telling.isPending}>Stop</Button>
        </>}
        {may('run') && isOver && view.data.status !== 'success' && <Button icon="history" onClick={() => retrying.mutate()} disabled={retrying.isPending}>Retry what failed</Button>}
        {may('run') && isOver && <Button icon="play" onClick={() => replaying.mutate(undefined)} disabled={replaying.isPending}>Replay</Button>}
        {isOver && <Button icon="history" onClick={() => setTakesBack(true)}>Take back its changes</Button>}
      </header>
      {takesBack && (
        <Dialog wide title="Take back the changes of this run" onClose={() => setTakesBack(false)}>
          <p>The files that it, its clones and subtasks and their agents wrote, as they were before.</p>
          <Suspense fallback={<Loading what="the changes" />}><TakeBack workspace={workspace} wanted={{scope: {kind: 'task', task_id: task}}} nothing="This run changed no file" /></Suspense>
        </Dialog>
      )}
      <div className="flow-body">
        <div>
          {[telling, retrying, replaying].map((one, key) => one.isError && <Failure key={key} error={one.error} />)}
          {view.isError && <Failure error={view.error} retry={() => void view.refetch()} />}
          {error !== undefined && <Failure error={error} />}
          {parked && <Failure error={new Error(parked)} />}
          {flow.isError && <Failure error={flow.error} />}
          {flow.data && <Suspense fallback={<Loading what="the graph" />}><Graph flow={flow.data} run={run} onChoose={setChosen} /></Suspense>}
        </div>
        <aside className="flow-side" aria-label="The run">
          {run.asks.map(ask => <AskForm key={ask.node} workspace={workspace} task={task} ask={ask} mayAnswer={may('run')} />)}
          <Waits workspace={workspace} task={task} isOver={isOver} />
          {chosen && <section><h2>{chosen}</h2><NodeFacts workspace={workspace} node={node} />{may('run') && isOver && node && <Button className="small" icon="play" onClick={() => replaying.mutate(chosen)} disabled={replaying.isPending}>Replay from here</Button>}</section>}
          {run.end && run.end.status !== 'merged' && (
            <section>
              <h2>Result</h2>
              {run.end.error && <p className="fault">{run.end.error}</p>}
              <Json value={run.end.output} />
            </section>
          )}
          <Labels labels={view.data.labels} />
          <section>
            <h2>Facts</h2>
            <dl className="facts">
              <div><dt>Nodes that ran</dt><dd>{count(steps)}</dd></div>
              <div><dt>Clones and subtasks</dt><dd>{count(children)}</dd></div>
              <div><dt>Tokens</dt><dd>{count(usage.input_tokens + usage.output_tokens)}</dd></div>
              <div><dt>Cost</dt><dd>{money(usage.cost_usd)}</dd></div>
              {budget?.max_tokens != null && <div><dt>Budget of tokens</dt><dd>{count(spent.tokens)} of {count(budget.max_tokens)}</dd></div>}
              {budget?.max_cost_usd != null && <div><dt>Budget of money</dt><dd>{money(spent.cost)} of {money(budget.max_cost_usd)}</dd></div>}
              {budget?.max_wall_ms != null && <div><dt>Budget of time</dt><dd>{duration(budget.max_wall_ms)}</dd></div>}
            </dl>
          </section>
          <section>
            <h2>Steps</h2>
            <ol className="timeline">
              {run.steps.map((step, at) => (
                <li key={at}><button type="button" className="link" onClick={() => setChosen(step.node)}>{step.node}</button><span className="grow">{step.text}</span></li>
              ))}
            </ol>
          </section>
          <section><h2>Compare with another run</h2><CompareWith workspace={workspace} name={name} task={task} onChoose={other => go(href(workspace, 'flows', [name, task], {with: other}))} /></section>
          <section><h2>Input</h2><Json value={run.input} /></section>
        </aside>
      </div>
    </div>
  );
}

function NodeFacts({workspace, node}: {workspace: string; node: NodeState | undefined}) {
  if (!node) return <p className="faint">It did not run.</p>;
  return (
    <>
      <dl className="facts">
        <div><dt>State</dt><dd>{node.status}</dd></div>
        <div><dt>Attempt</dt><dd>{node.attempt}</dd></div>
        {node.ms !== undefined && <div><dt>Time</dt><dd>{duration(node.ms)}</dd></div>}
      </dl>
      {node.chat && <p><a href={href(workspace, 'chats', [node.chat])}>The conversation of its agent</a></p>}
      {node.error && <p className="fault">{node.error}</p>}
      {node.output !== undefined && <Json value={node.output} />}
    </>
  );
}
