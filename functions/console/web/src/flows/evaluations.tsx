/** The evaluations of a flow over time: each case in each of them, and why a case failed. */
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {hub, type Schemas} from '../hub.ts';
import {useOnce} from '../once.ts';
import {usePages} from '../paged.ts';
import {useRights} from '../rights.ts';
import {href, useChoice} from '../router.ts';
import {useTitle} from '../title.ts';
import {Ago, Badge, Button, duration, Empty, Failure, Loading, More} from '../ui.tsx';

type Evaluation = Schemas['Evaluation'];
const MARKS: Record<Schemas['CaseOutcome'], [string, string]> = {passed: ['✓', 'good'], blessed: ['★', 'good'], failed: ['✗', 'bad'], error: ['!', 'bad'], skipped: ['–', 'faint']};
/** How many evaluations the table shows. */
const SHOWN = 12;
const at = (one: Schemas['CaseResult']): string => `${one.suite}/${one.case}`;

export function EvaluationsView({workspace, name}: {workspace: string; name: string}) {
  const client = useQueryClient();
  const {may} = useRights(workspace);
  const [chosen, setChosen] = useChoice('evaluation');
  const queryKey = [workspace, 'evaluations'];
  useTitle(`Evaluations of ${name}`);
  const all = usePages({
    queryKey,
    // A page may have evaluations of other flows alone.
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/evaluations', {path: {workspace_id: workspace}, query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.evaluations,
    // Its record grows case by case, and no stream tells of it.
    again: evaluations => evaluations.some(one => one.status !== 'finished') ? 700 : false,
  });
  const once = useOnce();
  const running = useMutation({
    mutationFn: () => once({}, idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations', {path: {workspace_id: workspace, flow: name}, body: {}, idempotencyKey})),
    onSuccess: made => {
      setChosen(made.evaluation_id);
      return client.invalidateQueries({queryKey});
    },
  });
  const list = all.items?.filter(one => one.flow.name === name) ?? [];
  const shown = list.find(one => one.evaluation_id === chosen) ?? list[0];
  return (
    <div className="page">
      <header className="page-head">
        <nav className="crumbs" aria-label="Path">
          <a href={href(workspace, 'flows')}>Flows</a><span><span aria-hidden="true"> / </span><a href={href(workspace, 'flows', [name])}>{name}</a></span>
          <span><span aria-hidden="true"> / </span><h1>Evaluations</h1></span>
        </nav>
        <span className="spacer" />
        {may('run') && <Button look="primary" icon="play" onClick={() => running.mutate()} disabled={running.isPending}>Evaluate</Button>}
      </header>
      <p className="lead">Each case of <code>evaluations.yaml</code> runs as a real task in a workspace of its own.</p>
      {running.isError && <Failure error={running.error} />}
      {all.isPending && <Loading what="the evaluations" />}
      {all.isError && <Failure error={all.error} retry={() => void all.refetch()} />}
      {all.items && list.length === 0 && !all.hasNextPage && <Empty icon="check" title="This flow was not evaluated yet" />}
      {list.length > 0 && <OverTime list={list.slice(0, SHOWN).reverse()} chosen={shown?.evaluation_id} onChoose={setChosen} />}
      {list.length < SHOWN && <More list={all} label="Older evaluations" />}
      {shown && <One evaluation={shown} />}
    </div>
  );
}

function OverTime({list, chosen, onChoose}: {list: Evaluation[]; chosen: string | undefined; onChoose: (id: string) => void}) {
  const cases = [...new Set(list.flatMap(one => one.cases.map(at)))].sort();
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Cases over time">
      <table className="over-time">
        <thead>
          <tr>
            <th>Case</th>
            {list.map(one => (
              <th key={one.evaluation_id}>
                <Button className="small" aria-pressed={one.evaluation_id === chosen} aria-label={`${one.passed}/${one.total} passed, ${new Date(one.created_at).toLocaleString()}`} onClick={() => onChoose(one.evaluation_id)}>{one.passed}/{one.total}</Button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cases.map(name => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {list.map(one => {
                const result = one.cases.find(result => at(result) === name);
                const [mark, tone] = result ? MARKS[result.outcome] : ['', 'faint'];
                return <td key={one.evaluation_id} className={tone}><span aria-hidden="true">{mark}</span><span className="visually-hidden">{result?.outcome ?? (one.status === 'finished' ? 'not there' : 'not yet')}</span></td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function One({evaluation}: {evaluation: Evaluation}) {
  const {status, passed, failed, skipped, total, cases, error, created_at} = evaluation;
  return (
    <section aria-label="The chosen evaluation">
      <h2>
        <Ago at={created_at} />{' '}
        {status !== 'finished' ? <Badge tone="busy">{cases.length} of {total}</Badge> : failed > 0 ? <Badge tone="bad">{failed} failed</Badge> : <Badge tone="good">{passed} passed</Badge>}
        {skipped > 0 && <Badge>{skipped} skipped</Badge>}
      </h2>
      {error && <Failure error={new Error(error.message)} />}
      <ul className="rows-list" aria-label="Cases">
        {cases.map(one => (
          <li key={at(one)} className="list-row wrap">
            <Badge tone={MARKS[one.outcome][1] === 'faint' ? 'neutral' : MARKS[one.outcome][1] as 'good' | 'bad'}>{one.outcome}</Badge>
            <span className="grow">{at(one)}</span>
            <span className="faint">{duration(one.duration_ms)}</span>
            {(one.failures ?? []).map((why, key) => <p key={key} className="fault">{why}</p>)}
            {(one.differences ?? []).length > 0 && (
              <table className="wide">
                <thead><tr><th>Place</th><th>Expected</th><th>Was</th></tr></thead>
                <tbody>{one.differences!.map(place => <tr key={place.path}><td><code>{place.path || '/'}</code></td><td><code>{JSON.stringify(place.a)}</code></td><td><code>{JSON.stringify(place.b)}</code></td></tr>)}</tbody>
              </table>
            )}
            {one.workspace_id && one.task_id && <a href={href(one.workspace_id, 'flows', [evaluation.flow.name, one.task_id])}>Its run</a>}
          </li>
        ))}
      </ul>
    </section>
  );
}
