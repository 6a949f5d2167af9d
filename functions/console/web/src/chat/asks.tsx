/** Requests of a chat to people: questions as forms, and permissions with the call that waits. */
import {useMutation} from '@tanstack/react-query';
import {useState, type FormEvent} from 'react';
import {SchemaField, textOf, valueOf, type JsonSchema, type Typed} from '../form.tsx';
import {hub, isRefused} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useDraft} from '../store.ts';
import {Ago, Badge, Button, Failure} from '../ui.tsx';
import type {Row} from './fold.ts';
import {Preview} from './preview.tsx';

type At = {workspace: string; chat: string};

export function QuestionCard({row, workspace, chat, mayAnswer}: At & {row: Extract<Row, {kind: 'question'}>; mayAnswer: boolean}) {
  const id = row.id.slice(2);
  const [draft, setDraft] = useDraft(`${workspace}/${chat}/${id}`);
  const typed: Typed = draft === '' ? {} : JSON.parse(draft);
  const [fault, setFault] = useState<string>();
  const answering = useMutation({
    mutationFn: (answers: Record<string, unknown>) => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}', {
      path: {workspace_id: workspace, chat_id: chat, question_id: id}, body: {answers},
    }),
    onSuccess: () => setDraft(''),
  });
  if (!row.open) {
    return (
      <div className="card quiet">
        <Icon name="ask" /> <span dir="auto">{row.questions.map(one => one.question).join(' ')}</span> <Badge>{row.answered ? 'answered' : 'closed'}</Badge>
      </div>
    );
  }
  if (!mayAnswer) {
    return (
      <section className="card ask" aria-label="The agent asks">
        <div className="card-head"><Icon name="ask" /><strong>The agent asks</strong><span className="expires">expires <Ago at={row.expires} /></span></div>
        {row.questions.map(one => <p key={one.name} dir="auto">{one.question}</p>)}
        <p className="field-hint">You can see this question. Answering it needs the right to converse.</p>
      </section>
    );
  }
  const answer = (values: Typed) => {
    try {
      const pairs = row.questions.map(one => [one.name, valueOf(one.question, (one.schema ?? {}) as JsonSchema, values[one.name] ?? '', true)]);
      setFault(undefined);
      answering.mutate(Object.fromEntries(pairs));
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  const type = (name: string, text: string) => setDraft(JSON.stringify({...typed, [name]: text}));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    answer(typed);
  };
  return (
    <form className="card ask" onSubmit={submit} aria-label="The agent asks" noValidate>
      <div className="card-head"><Icon name="ask" /><strong>The agent asks you</strong><span className="expires">expires <Ago at={row.expires} /></span></div>
      {row.questions.map(one => {
        const schema = (one.schema ?? {}) as JsonSchema;
        const buttons = (one.buttons ?? []) as unknown[];
        const choices = buttons.length > 0 && (
          <div className="choices">
            {buttons.map(choice => {
              const text = textOf(schema, choice);
              // With one question a button is the answer; with several it fills in its field.
              const choose = () => row.questions.length === 1 ? answer({[one.name]: text}) : type(one.name, text);
              return <Button key={text} aria-pressed={typed[one.name] === text} onClick={choose} disabled={answering.isPending}>{text}</Button>;
            })}
          </div>
        );
        const pages = pagesIn(one.question).map(url => <a key={url} className="page-link" href={url} target="_blank" rel="noreferrer noopener">{url}</a>);
        return <SchemaField key={one.name} name={one.name} label={one.question} schema={schema} required value={typed[one.name] ?? ''} onChange={text => type(one.name, text)} after={<>{pages}{choices}</>} />;
      })}
      {fault && <p className="fault" role="alert">{fault}</p>}
      {answering.isError && !isRefused(answering.error, 'CONFLICT') && <Failure error={answering.error} />}
      <div className="card-foot"><Button look="primary" type="submit" disabled={answering.isPending}>Answer</Button></div>
    </form>
  );
}

/** The addresses in a question. They are shown whole, so that a person sees where they lead. */
function pagesIn(question: string): string[] {
  const found = question.match(/https?:\/\/[^\s<>"]+/g) ?? [];
  return [...new Set(found.map(url => url.replace(/[.,:;!?)\]]+$/, '')))];
}

const OUTCOMES: Record<string, ['good' | 'bad' | 'neutral', string]> = {
  approved: ['good', 'allowed'], declined: ['bad', 'denied'], cancelled: ['neutral', 'cancelled'],
};

export function PermissionCard({row, workspace, chat, mayApprove}: At & {row: Extract<Row, {kind: 'permission'}>; mayApprove: boolean}) {
  const id = row.id.slice(2);
  const [reason, setReason] = useDraft(`${workspace}/${chat}/${id}`);
  const [denies, setDenies] = useState(reason !== '');
  const deciding = useMutation({
    mutationFn: (body: {outcome: 'approved' | 'declined'; always?: boolean; reason?: string}) => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}', {
      path: {workspace_id: workspace, chat_id: chat, permission_id: id}, body: {...body, ...(row.digest ? {digest: row.digest} : {})},
    }),
    onSuccess: () => setReason(''),
  });
  if (row.outcome !== undefined) {
    const [tone, word] = OUTCOMES[row.outcome] ?? ['neutral', row.outcome];
    return (
      <div className="card quiet">
        <Icon name="lock" /> <span>Permission for <code>{row.tool}</code>{row.why ? `: ${row.why}` : ''}</span>
        <Badge tone={tone}>{word}{row.by === 'timeout' ? ' (nobody answered)' : ''}</Badge>
      </div>
    );
  }
  return (
    <section className="card ask" aria-label="The agent asks for permission">
      <div className="card-head"><Icon name="lock" /><strong>Allow <code>{row.tool}</code>?</strong><span className="expires">expires <Ago at={row.expires} /></span></div>
      {row.reason && <p>{row.reason}</p>}
      <Preview tool={row.tool} args={row.args} workspace={workspace} />
      {row.always && <p className="field-hint">“Always” allows {ruleOf(row.always)} in this chat, and “Never” denies them.</p>}
      {deciding.isError && !isRefused(deciding.error, 'CONFLICT') && <Failure error={deciding.error} />}
      {!mayApprove && <p className="field-hint">You can see this question. Deciding it needs the right to approve.</p>}
      {mayApprove && (denies ? (
        <form className="deny" onSubmit={event => { event.preventDefault(); deciding.mutate({outcome: 'declined', ...(reason.trim() ? {reason: reason.trim()} : {})}); }}>
          <input aria-label="The reason, which the agent reads" placeholder="Why not? The agent reads it (optional)" maxLength={1000} value={reason} onChange={event => setReason(event.target.value)} autoFocus />
          <Button look="danger" type="submit" disabled={deciding.isPending}>Deny</Button>
          <Button look="quiet" onClick={() => setDenies(false)}>Back</Button>
        </form>
      ) : (
        <div className="card-foot">
          <Button look="primary" disabled={deciding.isPending} onClick={() => deciding.mutate({outcome: 'approved'})}>Allow once</Button>
          {row.always && <Button disabled={deciding.isPending} onClick={() => deciding.mutate({outcome: 'approved', always: true})}>Always</Button>}
          <Button look="danger" disabled={deciding.isPending} onClick={() => setDenies(true)}>Deny…</Button>
          {row.always && <Button look="danger" disabled={deciding.isPending} onClick={() => deciding.mutate({outcome: 'declined', always: true})}>Never</Button>}
        </div>
      ))}
    </section>
  );
}

function ruleOf(rule: NonNullable<Extract<Row, {kind: 'permission'}>['always']>): string {
  if ('path' in rule) return `writes to ${rule.path}`;
  if ('tool' in rule) return `all calls of ${String(rule.tool)}`;
  const words = 'words' in rule ? rule.words.join(' ') : '';
  return rule.kind === 'command_prefix' ? `commands that begin with “${words}”` : `the command “${words}”`;
}
