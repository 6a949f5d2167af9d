/** A chat: its conversation, what it asks, and where people write. */
import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {useMemo, useRef, useState} from 'react';
import {hub, type Schemas} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useOnce} from '../once.ts';
import {go, href} from '../router.ts';
import {useRights} from '../rights.ts';
import {remember, remembered, useDraft, useFields, useView} from '../store.ts';
import {useTitle} from '../title.ts';
import {Badge, Button, Dialog, Empty, Failure, Field, IconButton, Loading} from '../ui.tsx';
import {Aside} from './aside.tsx';
import {Composer, type Attached, type Way} from './composer.tsx';
import {isShared} from './fold.ts';
import {isGone, useChat, viewOf} from './live.ts';
import {ModelPicker, ModePicker, PersonaPicker} from './pickers.tsx';
import {Author} from './rows.tsx';
import {Transcript} from './transcript.tsx';

type At = {workspace: string; chat: string};

export function ChatPage({workspace, chat}: At) {
  const {older, retry, ...live} = useChat(workspace, chat);
  const view = useQuery({queryKey: [workspace, 'chat', chat], queryFn: ({signal}) => viewOf(workspace, chat, signal)});
  const {may, user: reader} = useRights(workspace);
  const {rows} = live.transcript;
  const namesAuthors = useMemo(() => isShared(rows, [view.data?.user_id, reader, ...(view.data?.queued ?? []).map(message => message.user_id)]), [rows, view.data, reader]);
  useTitle(view.data?.title);
  const [showsAside, setAside] = useView(`aside/${chat}`, false);
  const error = live.error ?? view.error;
  if (error !== undefined && error !== null && rows.length === 0) {
    return isGone(error)
      ? <Empty icon="chat" title="This chat is not there"><p>It was deleted, or it belongs to somebody else.</p></Empty>
      : <div className="page"><Failure error={error} retry={() => { retry(); void view.refetch(); }} /></div>;
  }
  if (!live.loaded || !view.data) return <Loading what="the chat" />;
  return (
    <div className={`chat ${showsAside ? 'with-aside' : ''}`}>
      <div className="chat-main">
        <ChatHead workspace={workspace} chat={chat} view={view.data} isRunning={live.transcript.turn !== undefined} mayWrite={may('converse')} onAside={() => setAside(!showsAside)} />
        <Transcript live={live} older={older} workspace={workspace} chat={chat} namesAuthors={namesAuthors} mayApprove={may('approve')} mayWrite={may('converse')} />
        {live.error !== undefined && <Failure error={live.error} retry={retry} />}
        <ChatFoot workspace={workspace} chat={chat} view={view.data} live={live.transcript} namesAuthors={namesAuthors} mayWrite={may('converse')} mayApprove={may('approve')} />
      </div>
      <Aside workspace={workspace} chat={chat} view={view.data} transcript={live.transcript} mayApprove={may('approve')} />
    </div>
  );
}

/** What a chat does. One that waits for a call of a program alone needs no person. */
export function StatusBadge({status, waiting}: {status: Schemas['ChatStatus']; waiting: Record<string, unknown>[] | undefined}) {
  const isOfProgram = (one: Record<string, unknown>) => one['event'] === 'call_handed_out';
  if (waiting?.length && waiting.every(isOfProgram)) return <Badge tone="busy">waits for a program</Badge>;
  if (waiting?.length || status === 'suspended') return <Badge tone="ask">needs you</Badge>;
  if (status === 'running' || status === 'queued') return <Badge tone="busy">working</Badge>;
  if (status === 'paused') return <Badge tone="bad">paused</Badge>;
  return null;
}

function ChatHead({workspace, chat, view, isRunning, mayWrite, onAside}: At & {view: Schemas['ChatWithHistory']; isRunning: boolean; mayWrite: boolean; onAside: () => void}) {
  const client = useQueryClient();
  // The title is a draft while its dialog is open: a reload opens it again.
  const [title, setTitle] = useDraft(`${workspace}/${chat}/title`);
  const [dialog, setDialog] = useState<'rename' | 'delete' | undefined>(title === '' ? undefined : 'rename');
  const close = () => {
    setTitle('');
    setDialog(undefined);
  };
  const path = {workspace_id: workspace, chat_id: chat};
  const renaming = useMutation({
    mutationFn: () => hub.patch('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, body: {title}}),
    onSuccess: () => {
      close();
      void client.invalidateQueries({queryKey: [workspace, 'chat', chat]});
      void client.invalidateQueries({queryKey: [workspace, 'chats']});
    },
  });
  const deleting = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path}),
    onSuccess: () => {
      void client.invalidateQueries({queryKey: [workspace, 'chats']});
      go(href(workspace, 'chats'));
    },
  });
  return (
    <header className="chat-head">
      <h1 title={view.title} dir="auto">{view.title}</h1>
      <Badge>{view.role}</Badge>
      <StatusBadge status={isRunning && view.status === 'idle' ? 'running' : view.status} waiting={view.waiting_for} />
      <span className="spacer" />
      {mayWrite && <>
        <IconButton label="Rename this chat" icon="edit" onClick={() => { setTitle(view.title); setDialog('rename'); }} />
        <IconButton label="Delete this chat" icon="trash" onClick={() => setDialog('delete')} />
      </>}
      <IconButton label="Plan, files and usage" icon="chart" className="aside-toggle" onClick={onAside} />
      {dialog === 'rename' && (
        <Dialog title="Rename this chat" onClose={close}>
          <form onSubmit={event => { event.preventDefault(); renaming.mutate(); }}>
            <Field label="Title"><input value={title} maxLength={200} required onChange={event => setTitle(event.target.value)} /></Field>
            {renaming.isError && <Failure error={renaming.error} />}
            <div className="dialog-foot"><Button look="primary" type="submit" disabled={renaming.isPending}>Rename</Button></div>
          </form>
        </Dialog>
      )}
      {dialog === 'delete' && (
        <Dialog title="Delete this chat?" onClose={() => setDialog(undefined)}>
          <p>It goes off the list, and its file into the trash. A turn that runs is stopped.</p>
          {deleting.isError && <Failure error={deleting.error} />}
          <div className="dialog-foot"><Button look="danger" onClick={() => deleting.mutate()} disabled={deleting.isPending}>Delete</Button></div>
        </Dialog>
      )}
    </header>
  );
}

/** The announcements to screen readers when the state of the chat changes. The words of the conversation would be too many. */
const TOLD: Record<Schemas['ChatStatus'], string> = {
  queued: 'The agent begins.', running: 'The agent works.', suspended: 'The agent waits for you.', idle: 'The agent has finished.', paused: 'The chat is paused.',
};

function ChatFoot({workspace, chat, view, live, namesAuthors, mayWrite, mayApprove}: At & {
  view: Schemas['ChatWithHistory']; live: {turn: string | undefined; waiting: string | undefined}; namesAuthors: boolean; mayWrite: boolean; mayApprove: boolean;
}) {
  const client = useQueryClient();
  const path = {workspace_id: workspace, chat_id: chat};
  const again = () => client.invalidateQueries({queryKey: [workspace, 'chat', chat]});
  const stopping = useMutation({mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop', {path}), onSuccess: again});
  const resuming = useMutation({
    mutationFn: (drop: boolean) => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume', {path, body: {drop}}), onSuccess: again,
  });
  const setting = useMutation({
    mutationFn: (body: {model?: string; mode?: 'chat' | 'plan'}) => hub.patch('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, body}),
    // A choice whose answer is lost may hold.
    onSettled: again,
  });
  // A message that follows a choice is for that model and mode: it waits until all choices have been answered, and is not sent when one of them
  // fails. After that the pickers show what holds, and the next message is for that.
  const chosen = useRef(Promise.resolve(true));
  const choose = (body: {model?: string; mode?: 'chat' | 'plan'}) => {
    const holds = setting.mutateAsync(body).then(() => true, () => false);
    const all = Promise.all([chosen.current, holds]).then(each => each.every(Boolean));
    chosen.current = all;
    void all.then(allHold => {
      if (!allHold && chosen.current === all) chosen.current = Promise.resolve(true);
    });
  };
  const wanted = setting.isPending ? setting.variables : undefined;
  const send = async (content: string, files: Attached[], way: Way, idempotencyKey: string) => {
    if (!await chosen.current) throw new Error('The message was not sent: its model or its mode could not be chosen.');
    const body = {content, files: files.map(file => file.id), on_busy: way} as const;
    await hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path, body, idempotencyKey});
    await again();
  };
  const isRunning = live.turn !== undefined || view.status === 'running' || view.status === 'queued' || view.status === 'suspended';
  const queued = view.queued ?? [];
  return (
    <div className="chat-foot">
      <p className="visually-hidden" role="status">{TOLD[isRunning && view.status === 'idle' ? 'running' : view.status]}</p>
      {isRunning && live.waiting && <p className="waiting" role="status"><Icon name="clock" size={16} /> {live.waiting}</p>}
      {view.status === 'paused' && (
        <div className="notice error" role="alert">
          <Icon name="pause" />
          <div><p>This chat is paused: {view.paused_reason}</p></div>
          {mayWrite && <>
            <Button onClick={() => resuming.mutate(false)} disabled={resuming.isPending}>Try again</Button>
            <Button look="quiet" onClick={() => resuming.mutate(true)} disabled={resuming.isPending}>Give it up</Button>
          </>}
        </div>
      )}
      {queued.length > 0 && (
        <ul className="queued" aria-label="Messages that wait">
          {queued.map(message => (
            <li key={message.turn_id}>
              <Icon name="clock" size={15} /><span dir="auto">{message.content}</span>
              {namesAuthors && message.user_id && <Author user={message.user_id} workspace={workspace} />}
              <span className="faint">after this turn</span>
            </li>
          ))}
        </ul>
      )}
      {[stopping, resuming, setting].map((one, key) => one.isError && <Failure key={key} error={one.error} />)}
      {mayWrite ? (
        <Composer
          workspace={workspace} draftKey={`${workspace}/${chat}`} placeholder={isRunning ? 'Write what comes next' : 'Write a message'}
          onSend={send} isRunning={isRunning} onStop={() => stopping.mutate()}
        >
          <ModelPicker value={wanted?.model ?? view.model} onChange={model => choose({model})} />
          {mayApprove && <ModePicker value={wanted?.mode ?? view.mode} onChange={mode => choose({mode})} />}
        </Composer>
      ) : <p className="read-only"><Icon name="lock" size={16} /> You can read this chat. Writing in it needs the right to converse.</p>}
    </div>
  );
}

const EXAMPLES = ['Show me what you can do', 'Ask me something', 'Run a command', 'Count slowly'];

export function NewChat({workspace}: {workspace: string}) {
  const client = useQueryClient();
  const {may, isKnown} = useRights(workspace);
  const [{persona, model, mode}, choose, clear] = useFields(`${workspace}/new/choices`, {
    persona: remembered(`persona.${workspace}`) ?? 'assistant', model: undefined as string | undefined, mode: 'chat' as 'chat' | 'plan',
  });
  const choices = JSON.stringify([persona, model, mode]);
  const once = useOnce();
  const start = async (goal: string, files: Attached[], idempotencyKey: string) => {
    remember(`persona.${workspace}`, persona);
    const made = await hub.post('/api/v1/workspaces/{workspace_id}/chats', {
      path: {workspace_id: workspace},
      body: {goal, files: files.map(file => file.id), role: persona, mode, ...(model ? {model} : {})},
      idempotencyKey,
    });
    clear();
    void client.invalidateQueries({queryKey: [workspace, 'chats']});
    go(href(workspace, 'chats', [made.chat_id]));
  };
  const starting = useMutation({mutationFn: (goal: string) => once([goal, choices], key => start(goal, [], key))});
  if (isKnown && !may('converse')) {
    return <Empty icon="lock" title="You can look around here"><p>Beginning a chat needs the right to converse. Ask an admin of this workspace.</p></Empty>;
  }
  return (
    <div className="new-chat">
      <h1>What should be done?</h1>
      <p className="lead">An agent works with the files of this workspace. You see each step, and it asks before it does what you should decide.</p>
      <Composer
        workspace={workspace} draftKey={`${workspace}/new`} placeholder="Describe a goal" choices={choices}
        onSend={(goal, files, _way, key) => start(goal, files, key)} isRunning={false} autoFocus
      >
        <PersonaPicker workspace={workspace} value={persona} onChange={persona => choose({persona})} />
        <ModelPicker value={model} onChange={model => choose({model})} />
        <ModePicker value={mode} onChange={mode => choose({mode})} />
      </Composer>
      <div className="examples">
        {EXAMPLES.map(example => <Button key={example} onClick={() => starting.mutate(example)} disabled={starting.isPending}>{example}</Button>)}
      </div>
      {starting.isError && <Failure error={starting.error} />}
    </div>
  );
}
