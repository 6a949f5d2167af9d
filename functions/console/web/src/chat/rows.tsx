/** One row of the transcript per fact. */
import {createContext, memo, useContext, useState, type ReactNode} from 'react';
import {Icon, type IconName} from '../icons.tsx';
import {Code, Markdown} from '../markdown.tsx';
import {useAuthors} from '../names.ts';
import {useRights} from '../rights.ts';
import {href, partsOf} from '../router.ts';
import {Badge, count, counted, duration, money, nameOf} from '../ui.tsx';
import {PermissionCard, QuestionCard} from './asks.tsx';
import type {ChangedFile, Row} from './fold.ts';
import {Fork} from './fork.tsx';
import {DiffLines, Preview} from './preview.tsx';

/** With `namesAuthors`, messages of people have the names of those who wrote them. */
export const RowView = memo(function RowView({row, workspace, chat, namesAuthors, mayApprove, mayWrite}: {row: Row; workspace: string; chat: string; namesAuthors: boolean; mayApprove: boolean; mayWrite: boolean}) {
  switch (row.kind) {
    case 'user': return (
      <article className="user" aria-label={namesAuthors ? 'Person' : 'You'}>
        {namesAuthors && row.author !== undefined && <Author user={row.author} workspace={workspace} />}
        <div className="bubble" dir="auto">{row.text}</div>
        <FileChips files={row.files.map(path => ({path, id: path, v: 0}))} workspace={workspace} />
        {mayWrite && <Fork workspace={workspace} chat={chat} at={{at_seq: row.seq}} draft={row.text} label="Edit" title="Edit this message in a fork of the chat" />}
      </article>
    );
    case 'assistant': return (
      <article className={`assistant ${row.complete ? '' : 'streaming'}`} aria-label="Agent">
        {row.thought && <Thought id={row.id} text={row.thought} isRunning={!row.complete && row.text === ''} />}
        {row.text && <Markdown text={row.text} workspace={workspace} />}
      </article>
    );
    // The question itself is the row after it.
    case 'call': return row.tool === 'ask_user' && row.output === undefined ? null : <Call row={row} workspace={workspace} />;
    case 'question': return <QuestionCard row={row} workspace={workspace} chat={chat} mayAnswer={mayWrite} />;
    case 'permission': return <PermissionCard row={row} workspace={workspace} chat={chat} mayApprove={mayApprove} />;
    case 'notice': return (
      <div className={`notice ${row.tone}`} role={row.tone === 'error' ? 'alert' : 'note'}>
        <Icon name={row.tone === 'error' ? 'warn' : 'history'} />
        <div><p>{row.text}</p>{row.hint && <p className="field-hint">{row.hint}</p>}</div>
      </div>
    );
    case 'end': return <End row={row} workspace={workspace} chat={chat} mayWrite={mayWrite} />;
  }
});

/** The name of the person who wrote a message. */
export function Author({user, workspace}: {user: string; workspace: string}) {
  const authorOf = useAuthors(workspace);
  const {user: me} = useRights(workspace);
  return <span className="author faint">{user === me ? 'You' : authorOf(`user:${user}`)}</span>;
}

/** The folds of a chat that a reader opened or closed, by id. Rows out of sight leave the document, and come back as they were. */
export interface FoldStates {
  get: (id: string) => boolean;
  set: (id: string, isOpen: boolean) => void;
}
export const Folds = createContext<FoldStates>({get: () => false, set: () => {}});

function Fold({id, icon, title, badge, children}: {id: string; icon: IconName; title: ReactNode; badge?: ReactNode; children: ReactNode}) {
  const folds = useContext(Folds);
  const [shown, setShown] = useState(folds.get(id));
  const toggle = () => {
    folds.set(id, !shown);
    setShown(!shown);
  };
  return (
    <div className="fold">
      <button type="button" className="fold-head" aria-expanded={shown} onClick={toggle}>
        <Icon name={icon} size={16} />
        <span className="fold-title">{title}</span>
        {badge}
        <Icon name={shown ? 'down' : 'right'} size={16} />
      </button>
      {shown && <div className="fold-body">{children}</div>}
    </div>
  );
}

function Thought({id, text, isRunning}: {id: string; text: string; isRunning: boolean}) {
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  return (
    <Fold id={id} icon="thought" title={isRunning ? <span className="pulsing">Thinking… <span className="faint">{last.slice(-90)}</span></span> : 'Thought'}>
      <p className="thought" dir="auto">{text}</p>
    </Fold>
  );
}

/** The words with which a call is told: the tool, and what it is about. */
function subjectOf({tool, args, path}: Extract<Row, {kind: 'call'}>): string {
  const fields = (typeof args === 'object' && args !== null ? args : {}) as Record<string, unknown>;
  for (const name of ['command', 'pattern', 'query', 'title', 'url', 'name']) {
    if (typeof fields[name] === 'string') return fields[name];
  }
  if (tool === 'plan_update_step') return `step ${String(fields.step)}: ${String(fields.status)}`;
  return path ?? (typeof fields.path === 'string' ? fields.path : '');
}

const Call = memo(function Call({row, workspace}: {row: Extract<Row, {kind: 'call'}>; workspace: string}) {
  const isRunning = row.output === undefined;
  const badge = isRunning && row.asks ? <Badge tone="ask">waits for you</Badge> : isRunning ? <Badge tone="busy">running</Badge> : row.success === false ? <Badge tone="bad">{row.code ?? 'failed'}</Badge> : null;
  return (
    <Fold id={row.id} icon="tool" badge={badge} title={<><strong>{row.tool}</strong> <span className="faint mono">{subjectOf(row)}</span></>}>
      {/* The answer of an edit has its differences, with their places. */}
      {!(row.tool === 'edit' && /^@@ /m.test(row.output ?? '')) && <Preview tool={row.tool} args={row.args} workspace={workspace} />}
      {isRunning && row.live !== undefined && <div aria-live="off"><Code text={row.live} language="output" /></div>}
      {row.output !== undefined && <Output text={row.output} truncated={row.truncated ?? false} />}
      {row.resources && <p className="faint">{duration(row.resources.cpu_ms)} of CPU, {Math.round(row.resources.peak_memory_bytes / 1048576)} MiB of memory</p>}
    </Fold>
  );
});

const SHORT = 4000;
function Output({text, truncated}: {text: string; truncated: boolean}) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, SHORT);
  if (text === '') return <p className="faint">No output.</p>;
  return (
    <>
      {/^@@ /m.test(shown) ? <DiffLines lines={shown.replace(/\n$/, '').split('\n')} /> : <Code text={shown} language="output" />}
      {text.length > SHORT && !all && <button type="button" className="link" onClick={() => setAll(true)}>Show all {count(text.length)} characters</button>}
      {truncated && <p className="faint">The output was cut to its cap.</p>}
    </>
  );
}

export function FileChips({files, workspace}: {files: readonly ChangedFile[]; workspace: string}) {
  if (files.length === 0) return null;
  return (
    <ul className="chips" aria-label="Files">
      {files.map(file => (
        <li key={file.id}>
          <a className="chip" href={href(workspace, 'files', partsOf(file.path), file.v > 1 ? {view: 'diff'} : {})} title={file.path}>
            <Icon name="file" size={15} />{nameOf(file.path)}{file.v > 0 && <span className="faint">v{file.v}</span>}
          </a>
        </li>
      ))}
    </ul>
  );
}

const REASONS: Record<string, string> = {
  max_output_tokens: 'The answer reached the limit of its length.', refusal: 'The model refused.', step_limit: 'The limit of steps was reached.',
  token_limit: 'The limit of tokens was reached.', time_limit: 'The limit of time was reached.', cost_limit: 'The limit of cost was reached.',
  context_limit: 'The context is full.', error: 'The turn ended with an error.', user_cancelled: 'You stopped it.',
};

function End({row, workspace, chat, mayWrite}: {row: Extract<Row, {kind: 'end'}>; workspace: string; chat: string; mayWrite: boolean}) {
  const {input, output, cost} = row.usage;
  const reason = row.reason === 'end_turn' ? undefined : REASONS[row.reason] ?? row.reason;
  return (
    <footer className="end">
      <FileChips files={row.files.filter(file => !file.path.startsWith('/chats/'))} workspace={workspace} />
      {reason && <p className="end-reason">{reason}</p>}
      <div className="end-line">
        {input + output > 0 && <p className="faint">{counted(input, 'token')} read, {count(output)} written{cost > 0 ? `, ${money(cost)}` : ''}</p>}
        <span className="spacer" />
        {mayWrite && <Fork workspace={workspace} chat={chat} at={{at_turn: row.id.slice(2)}} label="Fork" title="Go on from here in another chat" />}
      </div>
    </footer>
  );
}
