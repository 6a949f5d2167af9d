/** Schedules: their times, their actions, and their last runs. */
import {useMutation} from '@tanstack/react-query';
import {useState} from 'react';
import {hub, refreshSoon, type Schemas} from '../hub.ts';
import {useOnce} from '../once.ts';
import {usePages} from '../paged.ts';
import {useRights} from '../rights.ts';
import {href} from '../router.ts';
import {useFields, useView} from '../store.ts';
import {Ago, Badge, Button, Confirm, Dialog, Empty, Failure, Field, IconButton, Loading, More} from '../ui.tsx';

type Schedule = Schemas['Schedule'];

export default function SchedulesPage({workspace}: {workspace: string}) {
  const {may} = useRights(workspace);
  const [isMaking, setMaking] = useView(`schedule/${workspace}`, false);
  const schedules = usePages({
    queryKey: [workspace, 'schedules'],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/schedules', {path: {workspace_id: workspace}, query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.schedules,
    again: () => 15_000,
  });
  const list = schedules.items;
  return (
    <div className="page">
      <header className="page-head">
        <h1>Schedules</h1>
        <span className="spacer" />
        {may('converse') && <Button icon="plus" look="primary" onClick={() => setMaking(true)}>New schedule</Button>}
      </header>
      {schedules.isPending && <Loading what="the schedules" />}
      {schedules.isError && <Failure error={schedules.error} retry={() => void schedules.refetch()} />}
      {list?.length === 0 && <Empty icon="clock" title="Nothing begins by itself"><p>A schedule begins a chat or your daily brief at a time, or again and again. It acts with your rights.</p></Empty>}
      {list && list.length > 0 && <ul className="rows-list">{list.map(one => <Row key={one.schedule_id} workspace={workspace} schedule={one} mayChange={may('converse')} />)}</ul>}
      <More list={schedules} />
      {isMaking && <Make workspace={workspace} onClose={() => setMaking(false)} />}
    </div>
  );
}

/** The action of a schedule, in words. */
function told(action: Schedule['action']): string {
  if (action.kind === 'chat') return action.goal;
  if (action.kind === 'task') return `the flow ${action.flow}`;
  if (action.kind === 'tool') return action.tool;
  if (action.kind === 'daily_brief') return 'the daily brief';
  return action.content;
}

function timesOf(times: Schedule['times']): string {
  if (times.kind === 'once') return new Date(times.at).toLocaleString();
  const words = RULES.find(([rule]) => rule === times.rrule)?.[1] ?? times.rrule;
  const [, hour, minute] = /T(\d\d):?(\d\d)/.exec(times.begins) ?? [];
  return `${words}, ${hour}:${minute} (${times.time_zone})`;
}

function Row({workspace, schedule, mayChange}: {workspace: string; schedule: Schedule; mayChange: boolean}) {
  const path = {workspace_id: workspace, schedule_id: schedule.schedule_id};
  const [asks, setAsks] = useState(false);
  const once = useOnce();
  const again = () => refreshSoon([workspace, 'schedules']);
  const telling = useMutation({
    mutationFn: async (word: 'run' | 'pause' | 'resume') => {
      if (word === 'run') await once(word, idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run', {path, idempotencyKey}));
      else await hub.patch('/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}', {path, body: {paused: word === 'pause'}});
    },
    onSuccess: again,
  });
  const removing = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}', {path}),
    onSuccess: () => { setAsks(false); again(); },
  });
  const {name, status, next_at: next, last_run: last, paused_because: because} = schedule;
  const began = last?.chat_id ? href(workspace, 'chats', [last.chat_id]) : last?.task_id && schedule.action.kind === 'task' ? href(workspace, 'flows', [schedule.action.flow, last.task_id]) : undefined;
  return (
    <li className="list-row wrap">
      <span className="grow stacked"><strong>{name}</strong><span className="faint">{timesOf(schedule.times)}: {told(schedule.action)}</span></span>
      {status === 'active' && next ? <span className="faint">next <Ago at={next} /></span> : <Badge tone={status === 'paused' ? 'ask' : 'neutral'}>{status}</Badge>}
      {last && (began ? <a href={began}>last run</a> : last.error ? <Badge tone="bad">{last.error.code}</Badge> : null)}
      {mayChange && <>
        <IconButton label={`Run ${name} now`} icon="play" onClick={() => telling.mutate('run')} disabled={telling.isPending} />
        {status === 'active' && <IconButton label={`Pause ${name}`} icon="pause" onClick={() => telling.mutate('pause')} disabled={telling.isPending} />}
        {status === 'paused' && <IconButton label={`Resume ${name}`} icon="history" onClick={() => telling.mutate('resume')} disabled={telling.isPending} />}
        <IconButton label={`Remove ${name}`} icon="trash" onClick={() => setAsks(true)} />
      </>}
      {because && <p className="fault">{because.message}</p>}
      {telling.isError && <Failure error={telling.error} />}
      {asks && (
        <Confirm title={`Remove ${name}?`} label="Remove" acting={removing} onConfirm={() => removing.mutate()} onClose={() => setAsks(false)}>
          <p>Nothing more begins by it. The chats and tasks that it began stay.</p>
        </Confirm>
      )}
    </li>
  );
}

const RULES: [rule: string, words: string][] = [
  ['FREQ=DAILY', 'Each day'], ['FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR', 'Each working day'], ['FREQ=WEEKLY', 'Each week'], ['FREQ=MONTHLY', 'Each month'], ['FREQ=HOURLY', 'Each hour'],
];

function Make({workspace, onClose}: {workspace: string; onClose: () => void}) {
  const soon = new Date(Date.now() + 3_600_000 - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const [{name, what, goal, rule, begins}, change, clear] = useFields(`${workspace}/schedule`, {name: '', what: 'chat', goal: '', rule: RULES[0]![0], begins: soon});
  const once = useOnce();
  const making = useMutation({
    mutationFn: () => {
      const body: Schemas['NewSchedule'] = {
        name: name.trim(), action: what === 'chat' ? {kind: 'chat', goal: goal.trim()} : {kind: 'daily_brief'},
        ...(rule === '' ? {at: new Date(begins).toISOString()} : {rrule: rule, begins, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone}),
      };
      return once(body, idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/schedules', {path: {workspace_id: workspace}, body, idempotencyKey}));
    },
    onSuccess: () => {
      clear();
      refreshSoon([workspace, 'schedules']);
      onClose();
    },
  });
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); making.mutate(); }}>
        <Field label="Name"><input value={name} required maxLength={100} onChange={event => change({name: event.target.value})} /></Field>
        <Field label="What begins">
          <select value={what} onChange={event => change({what: event.target.value})}>
            <option value="chat">A chat</option>
            <option value="daily_brief">My daily brief</option>
          </select>
        </Field>
        {what === 'chat' && <Field label="Goal" hint="The first message of the chat that it begins."><textarea rows={3} value={goal} required onChange={event => change({goal: event.target.value})} /></Field>}
        <Field label="How often">
          <select value={rule} onChange={event => change({rule: event.target.value})}>
            {RULES.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
            <option value="">Once</option>
          </select>
        </Field>
        <Field label={rule === '' ? 'When' : 'The first time'}><input type="datetime-local" value={begins} required onChange={event => change({begins: event.target.value})} /></Field>
        {making.isError && <Failure error={making.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={making.isPending || name.trim() === '' || (what === 'chat' && goal.trim() === '')}>Make it</Button></div>
      </form>
    </Dialog>
  );
}
