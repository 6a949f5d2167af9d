/** Beside the conversation: the plan with its progress, the files that were changed, and what it cost. */
import {useMutation, useQuery} from '@tanstack/react-query';
import {hub, type Schemas} from '../hub.ts';
import {Icon, type IconName} from '../icons.tsx';
import {href, partsOf} from '../router.ts';
import {Button, count, Failure, Labels, money} from '../ui.tsx';
import type {ChangedFile, Transcript} from './fold.ts';
import {FileChips} from './rows.tsx';

const MARKS: Record<string, string> = {' ': 'pending', x: 'done', X: 'done', '~': 'in_progress', '>': 'in_progress', '!': 'failed', '-': 'skipped'};

/** The steps of a plan file, a Markdown checklist. */
export function stepsOf(text: string): {title: string; status: string}[] {
  const marks = [...text.matchAll(/^\s*(?:[-*]|\d+\.)\s+\[(.)\]\s+(.*)$/gm)];
  return marks.map(([, mark, title]) => ({title: (title ?? '').trim(), status: MARKS[mark ?? ' '] ?? 'pending'}));
}

const ICONS: Record<string, IconName> = {done: 'check', failed: 'close', in_progress: 'play'};

export function Aside({workspace, chat, view, transcript, mayApprove}: {
  workspace: string; chat: string; view: Schemas['ChatWithHistory']; transcript: Transcript; mayApprove: boolean;
}) {
  const path = view.plan_path ?? transcript.plan?.path;
  const file = useQuery({
    queryKey: [workspace, 'files', 'plan', path],
    enabled: path !== undefined && path !== null,
    queryFn: async ({signal}) => {
      const {v, file_id} = await hub.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: {workspace_id: workspace}, query: {path: path!}, signal});
      // The steps of this version: the person who approves it approves what is shown.
      const content = await hub.read('/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content', {path: {workspace_id: workspace, file_id, v}, signal});
      return {v, steps: stepsOf(await content.text())};
    },
  });
  const approving = useMutation({
    mutationFn: (v: number) => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve', {path: {workspace_id: workspace, chat_id: chat}, body: {v}}),
  });
  // The events are ahead of the file while a turn runs.
  const steps = transcript.turn && transcript.plan ? transcript.plan.steps : file.data?.steps ?? transcript.plan?.steps ?? [];
  const done = steps.filter(step => step.status === 'done').length;
  const files = changedIn(transcript);
  const {usage} = view;
  const context = transcript.usage;
  return (
    <aside className="chat-aside" aria-label="About this chat">
      {steps.length > 0 && path && (
        <section>
          <h2><a href={href(workspace, 'files', partsOf(path))}>Plan</a> <span className="faint">{done} of {steps.length}</span></h2>
          <progress max={steps.length} value={done} aria-label="Steps done" />
          <ol className="steps">
            {steps.map((step, at) => (
              <li key={at} className={step.status}>
                <span className="step-mark" aria-hidden="true">{ICONS[step.status] ? <Icon name={ICONS[step.status]!} size={14} /> : at + 1}</span>
                <span>{step.title}<span className="visually-hidden"> ({step.status.replace('_', ' ')})</span></span>
              </li>
            ))}
          </ol>
          {mayApprove && view.mode === 'plan' && file.data && view.status === 'idle' && (
            <Button look="primary" icon="check" onClick={() => approving.mutate(file.data.v)} disabled={approving.isPending}>Approve and build</Button>
          )}
          {approving.isError && <Failure error={approving.error} />}
        </section>
      )}
      {files.length > 0 && (
        <section>
          <h2>Files</h2>
          <FileChips files={files} workspace={workspace} />
        </section>
      )}
      <Labels labels={view.labels} />
      <section>
        <h2>Usage</h2>
        <dl className="facts">
          <div><dt>Turns</dt><dd>{count(view.turns)}</dd></div>
          <div><dt>Tokens read</dt><dd>{count(usage.input_tokens)}</dd></div>
          <div><dt>Tokens written</dt><dd>{count(usage.output_tokens)}</dd></div>
          <div><dt>Cost</dt><dd>{money(usage.cost_usd)}</dd></div>
          {context.contextLimit > 0 && <div><dt>Context</dt><dd>{Math.round(100 * context.contextUsed / context.contextLimit)}%</dd></div>}
        </dl>
      </section>
    </aside>
  );
}

function changedIn(transcript: Transcript): ChangedFile[] {
  const latest = new Map<string, ChangedFile>();
  for (const row of transcript.rows) if (row.kind === 'end') row.files.forEach(file => latest.set(file.id, file));
  transcript.files.forEach(file => latest.set(file.id, file));
  return [...latest.values()].filter(file => !file.path.startsWith('/chats/') && file.v > 0);
}
