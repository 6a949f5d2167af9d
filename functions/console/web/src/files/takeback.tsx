/** A rewind: what it would change is shown, then it is done, and it can be undone. */
import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {DiffLines} from '../chat/preview.tsx';
import {hub, type Schemas} from '../hub.ts';
import {useRights} from '../rights.ts';
import {href, partsOf} from '../router.ts';
import {useAtRisk, useDraft} from '../store.ts';
import {Ago, Badge, Button, counted, Empty, Failure, Loading} from '../ui.tsx';

type Rewind = Schemas['Rewind'];
/** What is taken back, and to which point. */
export type Wanted = Pick<Schemas['RewindRequest'], 'scope' | 'to'>;
const ROUTE = '/api/v1/workspaces/{workspace_id}/rewind';
const WORDS: Record<Schemas['RewindOp'], [string, 'good' | 'bad' | 'busy' | 'neutral']> = {
  create: ['comes back', 'good'], update: ['changes', 'busy'], delete: ['goes to the trash', 'bad'], move: ['moves', 'neutral'], mark: ['tags and links', 'neutral'],
};

/** A rewind that was carried out, in words, and its id, by which it is undone. */
interface Done {
  rewind_id: string | undefined;
  words: string;
  conflicts: number;
}
const doneOf = (made: Rewind): Done => ({rewind_id: made.rewind_id ?? undefined, words: steps(made), conflicts: made.conflicts.length});

/** Give it a key, so that another wish begins anew. */
export function TakeBack({workspace, wanted, nothing}: {workspace: string; wanted: Wanted; nothing: string}) {
  const client = useQueryClient();
  const {may} = useRights(workspace);
  const at = {path: {workspace_id: workspace}};
  const preview = useQuery({
    // Below the files: a change of any file makes the preview stale.
    queryKey: [workspace, 'files', 'rewind', wanted],
    queryFn: ({signal}) => hub.post(ROUTE, {...at, body: {...wanted, preview: true}, signal}),
  });
  /** Carries a rewind out. A long one answers before it has ended, and goes on when it is asked for again. */
  const carryOut = async (request: Schemas['RewindRequest']): Promise<Rewind> => {
    let done = await hub.post(ROUTE, {...at, body: request});
    while (done.state === 'running') done = await hub.post(ROUTE, {...at, body: {...request, rewind_id: done.rewind_id ?? null}});
    await client.invalidateQueries({queryKey: [workspace, 'files']});
    return done;
  };
  // A rewind can be undone after a reload, too.
  const [kept, keep] = useDraft(`undo/${workspace}/${JSON.stringify(wanted)}`);
  const rewinding = useMutation({mutationFn: ({as_of}: Rewind) => carryOut({...wanted, as_of}), onSuccess: made => keep(JSON.stringify(doneOf(made)))});
  const undoing = useMutation({mutationFn: (rewind_id: string) => carryOut({scope: {kind: 'rewind', rewind_id}}), onSuccess: () => keep('')});
  useAtRisk(rewinding.isPending || undoing.isPending);
  const failures = [rewinding, undoing].map((one, key) => one.isError && <Failure key={key} error={one.error} />);
  const done: Done | undefined = undoing.data ? doneOf(undoing.data) : kept === '' ? undefined : JSON.parse(kept);
  if (done) {
    return (
      <>
        {failures}
        <div className="notice" role="status">
          <div><p><strong>{undoing.data ? 'Undone' : 'Done'}: {done.words}.</strong> {done.conflicts > 0 && `${done.conflicts} stayed as others left them.`}</p></div>
          {!undoing.data && done.rewind_id && <Button className="small" icon="history" onClick={() => undoing.mutate(done.rewind_id!)} disabled={undoing.isPending}>Undo</Button>}
          {!undoing.data && <Button className="small" look="quiet" onClick={() => keep('')} disabled={undoing.isPending}>Look again</Button>}
        </div>
      </>
    );
  }
  if (preview.isPending) return <Loading what="the changes" />;
  if (preview.isError) return <Failure error={preview.error} retry={() => void preview.refetch()} />;
  return (
    <>
      {failures}
      <Preview workspace={workspace} preview={preview.data} nothing={nothing} />
      {preview.data.steps.length > 0 && (
        <div className="dialog-foot">
          {may('write')
            ? <Button look="primary" icon="history" onClick={() => rewinding.mutate(preview.data)} disabled={rewinding.isPending}>{rewinding.isPending ? 'Going back…' : `Take back ${steps(preview.data)}`}</Button>
            : <p className="field-hint">Going back needs the right to write.</p>}
        </div>
      )}
    </>
  );
}

function steps({counts}: Rewind): string {
  return counted(counts.creates + counts.updates + counts.deletes + counts.moves + counts.marks, 'change');
}

function Preview({workspace, preview, nothing}: {workspace: string; preview: Rewind; nothing: string}) {
  if (preview.steps.length + preview.conflicts.length + preview.unavailable.length === 0) {
    return <Empty icon="check" title={nothing} />;
  }
  return (
    <>
      <ul className="rows-list" aria-label="What would change">
        {preview.steps.map((step, key) => (
          <li key={key} className="list-row wrap">
            <Badge tone={WORDS[step.op][1]}>{WORDS[step.op][0]}</Badge>
            <span className="grow stacked">
              <a href={href(workspace, 'files', partsOf(step.path))}>{step.path}</a>
              <span className="faint">{about(step)}</span>
            </span>
            {step.diff && <details className="step-diff"><summary>What changes</summary><DiffLines lines={step.diff.replace(/\n$/, '').split('\n')} /></details>}
          </li>
        ))}
      </ul>
      {preview.next_cursor && <p className="faint">These are the first {preview.steps.length} of {steps(preview)}.</p>}
      {preview.conflicts.length + preview.unavailable.length > 0 && <>
        <h2>What stays as it is</h2>
        <ul className="rows-list" aria-label="What stays as it is">
          {preview.conflicts.map(one => (
            <li key={one.file_id} className="list-row wrap">
              <span className="grow stacked"><strong>{one.path}</strong><span className="faint">{one.reason}</span></span>
              {one.at && <span className="faint"><Ago at={one.at} /></span>}
            </li>
          ))}
          {preview.unavailable.map((one, key) => (
            <li key={key} className="list-row wrap"><span className="grow stacked"><strong>{one.path}</strong><span className="faint">{one.reason}</span></span></li>
          ))}
        </ul>
      </>}
    </>
  );
}

function about(step: Schemas['RewindStep']): string {
  if (step.op === 'move') return `from ${step.from}`;
  if (step.op === 'update') return `version ${step.to_v} becomes current again`;
  if (step.op === 'delete') return 'it was not there then';
  if (step.op === 'create') return 'it was there then';
  const {tag, untag, link, unlink} = step.mark ?? {};
  return [tag && `gets ${tag.join(', ')}`, untag && `loses ${untag.join(', ')}`, link && 'gets a link', unlink && 'loses a link'].filter(Boolean).join('; ');
}
