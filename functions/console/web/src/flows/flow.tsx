import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {lazy, Suspense, useState} from 'react';
import {isGone} from '../chat/live.ts';
import {SchemaField, textOf, valueOf, type JsonSchema, type Typed} from '../form.tsx';
import {hub, isRefused, type Schemas} from '../hub.ts';
import {useOnce} from '../once.ts';
import {useRights} from '../rights.ts';
import {go, href, partsOf} from '../router.ts';
import {useDraft} from '../store.ts';
import {useTitle} from '../title.ts';
import {Badge, Button, counted, Empty, Failure, Field, Loading} from '../ui.tsx';
import {TaskList} from './page.tsx';

const Graph = lazy(() => import('./graph.tsx'));

export function useFlow(workspace: string, name: string) {
  return useQuery({
    queryKey: [workspace, 'flows', 'one', name],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/flows/{flow}', {path: {workspace_id: workspace, flow: name}, signal}),
  });
}

export function FlowView({workspace, name}: {workspace: string; name: string}) {
  const flow = useFlow(workspace, name);
  const {may} = useRights(workspace);
  const path = {workspace_id: workspace, flow: name};
  const check = useQuery({
    queryKey: [workspace, 'flows', 'check', name],
    queryFn: ({signal}) => hub.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/check', {path, body: {}, signal}),
  });
  const hasFaults = isRefused(flow.error, 'UNPROCESSABLE');
  useTitle(name);
  if (isGone(flow.error)) return <Empty icon="flow" title="This flow is not there"><p>Its folder was moved or removed, or you may not see it.</p><a className="button" href={href(workspace, 'flows')}>To the flows</a></Empty>;
  return (
    <div className="flow-page">
      <header className="page-head">
        <nav className="crumbs" aria-label="Path"><a href={href(workspace, 'flows')}>Flows</a><span><span aria-hidden="true"> / </span><h1>{name}</h1></span></nav>
        {check.data && (check.data.ok ? <Badge tone="good">checked</Badge> : <Badge tone="bad">{counted(check.data.faults.length, 'fault')}</Badge>)}
        <span className="spacer" />
        <a className="button" href={href(workspace, 'flows', [name], {view: 'evaluations'})}>Evaluations</a>
        <Button onClick={() => void check.refetch()} disabled={check.isFetching}>Check</Button>
      </header>
      <div className="flow-body">
        <div>
          {flow.isPending && <Loading what="the flow" />}
          {flow.isError && !hasFaults && <div className="page"><Failure error={flow.error} retry={() => void flow.refetch()} /></div>}
          {flow.data && <Suspense fallback={<Loading what="the graph" />}><Graph flow={flow.data} /></Suspense>}
          {hasFaults && check.data && <div className="page"><Faults workspace={workspace} flow={name} report={check.data} /></div>}
        </div>
        <aside className="flow-side" aria-label="Run and check">
          {flow.data && <section><h2>Run it</h2><RunForm workspace={workspace} flow={flow.data} mayRun={may('run')} /></section>}
          {check.data && check.data.faults.length + check.data.notes.length > 0 && !hasFaults && <section><h2>Check</h2><Faults workspace={workspace} flow={name} report={check.data} /></section>}
          {check.isError && <Failure error={check.error} retry={() => void check.refetch()} />}
          <section><h2>Runs</h2><TaskList workspace={workspace} flow={name} /></section>
        </aside>
      </div>
    </div>
  );
}

function Faults({workspace, flow, report}: {workspace: string; flow: string; report: Schemas['FlowReport']}) {
  return (
    <ul className="faults">
      {[...report.faults.map(one => ({...one, isFault: true})), ...report.notes.map(one => ({...one, isFault: false}))].map((fault, at) => (
        <li key={at}>
          <Badge tone={fault.isFault ? 'bad' : 'neutral'}>{fault.code}</Badge>{' '}
          <a href={href(workspace, 'files', [...partsOf(`/system/flows/${flow}`), ...partsOf(fault.file)], {view: 'edit'})}>{fault.file}:{fault.line}:{fault.column}</a>
          <p>{fault.message}</p>
          {fault.hint && <p className="field-hint">{fault.hint}</p>}
        </li>
      ))}
    </ul>
  );
}

/** The form of a flow's input: a field per property of its schema, or JSON where it has none. */
function RunForm({workspace, flow, mayRun}: {workspace: string; flow: Schemas['Flow']; mayRun: boolean}) {
  const client = useQueryClient();
  const schema = (flow.input_schema ?? undefined) as JsonSchema | undefined;
  const fields = Object.entries(schema?.properties ?? {});
  const [draft, setDraft] = useDraft(`${workspace}/flow/${flow.name}`);
  const typed: Typed = draft === '' ? {} : JSON.parse(draft);
  const [fault, setFault] = useState<string>();
  const [stepping, setStepping] = useDraft(`${workspace}/flow/${flow.name}/stepping`);
  const steps = stepping !== '';
  const once = useOnce();
  const running = useMutation({
    mutationFn: (input: unknown) => {
      const body = {input, stepping: steps};
      return once(body, idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {workspace_id: workspace, flow: flow.name}, body, idempotencyKey}));
    },
    onSuccess: made => {
      setStepping('');
      void client.invalidateQueries({queryKey: [workspace, 'tasks']});
      go(href(workspace, 'flows', [flow.name, made.task_id]));
    },
  });
  if (!mayRun) return <p className="field-hint">Running a flow needs the right to run.</p>;
  const type = (name: string, text: string) => setDraft(JSON.stringify({...typed, [name]: text}));
  const submit = () => {
    try {
      setFault(undefined);
      if (fields.length === 0) return running.mutate(JSON.parse(typed[''] || '{}'));
      const values = fields.map(([name, field]) => [name, valueOf(field.title ?? name, field, typed[name] ?? textOf(field, field.default), schema?.required?.includes(name) ?? false)]);
      running.mutate(Object.fromEntries(values.filter(([, value]) => value !== undefined)));
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <form onSubmit={event => { event.preventDefault(); submit(); }} noValidate>
      {fields.map(([name, field]) => (
        <SchemaField key={name} name={name} schema={field} required={schema?.required?.includes(name) ?? false} value={typed[name] ?? textOf(field, field.default)} onChange={text => type(name, text)} />
      ))}
      {fields.length === 0 && <Field label="Input, as JSON"><textarea className="mono" rows={5} value={typed[''] ?? ''} placeholder="{}" onChange={event => type('', event.target.value)} /></Field>}
      <label className="check-line"><input type="checkbox" checked={steps} onChange={event => setStepping(event.target.checked ? 'yes' : '')} /> Pause before each node</label>
      {fault && <p className="fault" role="alert">{fault}</p>}
      {running.isError && <Failure error={running.error} />}
      <div className="dialog-foot"><Button look="primary" icon="play" type="submit" disabled={running.isPending}>Run</Button></div>
    </form>
  );
}
