/** The requests to people below a run: of its agents, and of its clones and subtasks. */
import {useQuery} from '@tanstack/react-query';
import {PermissionCard, QuestionCard} from '../chat/asks.tsx';
import {permissionRow, questionRow, type DataOf} from '../chat/fold.ts';
import {hub, type Schemas} from '../hub.ts';
import {useRights} from '../rights.ts';
import {href} from '../router.ts';
import {Failure} from '../ui.tsx';
import {AskForm} from './ask.tsx';

type Waiting = Schemas['WaitingEntry'];
type Request = {event: 'permission_required'; data: DataOf<'permission_required'>} | {event: 'question'; data: DataOf<'question'>};

export function Waits({workspace, task, isOver}: {workspace: string; task: string; isOver: boolean}) {
  const waiting = useQuery({
    queryKey: [workspace, 'waiting', task],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/waiting', {path: {workspace_id: workspace}, query: {task, limit: 50}, signal}),
    enabled: !isOver,
    // What was told while the stream was away is not told again.
    refetchInterval: query => (query.state.data?.waiting.length ? 30_000 : false),
  });
  if (isOver) return null;
  if (waiting.isError && !waiting.data) return <Failure error={waiting.error} retry={() => void waiting.refetch()} />;
  if (!waiting.data) return null;
  // The questions of the run's own nodes are told by its stream.
  const others = waiting.data.waiting.filter(one => one.chat_id != null || one.task_id !== task);
  return (
    <>
      {others.map(one => <Wait key={one.chat_id ?? one.task_id} workspace={workspace} one={one} />)}
      {waiting.data.next_cursor && <p className="faint">More of them wait; they are shown when these are answered.</p>}
    </>
  );
}

function Wait({workspace, one}: {workspace: string; one: Waiting}) {
  const {may} = useRights(workspace);
  const {chat_id: chat, task_id: task, node} = one;
  return (
    <section aria-label={`${node} waits`}>
      <h2>{chat ? `The agent of ${node}` : node}</h2>
      {chat && <p className="faint"><a href={href(workspace, 'chats', [chat])}>Its conversation</a></p>}
      {(one.waiting_for as unknown as Request[]).map(asked => {
        if (asked.event === 'permission_required' && chat) return <PermissionCard key={asked.data.permission_id} row={permissionRow(asked.data)} workspace={workspace} chat={chat} mayApprove={may('approve')} />;
        if (asked.event !== 'question') return null;
        return chat
          ? <QuestionCard key={asked.data.question_id} row={questionRow(asked.data, true)} workspace={workspace} chat={chat} mayAnswer={may('converse')} />
          : task && node && <AskForm key={asked.data.question_id} workspace={workspace} task={task} ask={{node, questions: asked.data.questions}} mayAnswer={may('run')} />;
      })}
    </section>
  );
}
