/** The sandbox of the workspace: its state, and a terminal for commands of people. Agents run theirs in chats. */
import {useMutation, useQuery} from '@tanstack/react-query';
import {useEffect, useRef, useState, type FormEvent, type KeyboardEvent} from 'react';
import {hub, refreshSoon, told, type Schemas} from '../hub.ts';
import {useRights} from '../rights.ts';
import {href} from '../router.ts';
import {useDraft, useFields} from '../store.ts';
import {Ago, Badge, Button, Dialog, Failure, IconButton, Loading} from '../ui.tsx';

const TONES: Record<string, 'neutral' | 'good' | 'bad' | 'busy'> = {ready: 'good', starting: 'busy', failed: 'bad'};
const WORDS: Record<string, string> = {
  cold: 'It starts with the next command.', starting: 'It starts.', ready: 'Commands begin at once.', failed: 'It could not start.',
};

export default function SandboxPage({workspace}: {workspace: string}) {
  const {may} = useRights(workspace);
  const [asks, setAsks] = useState(false);
  const path = {workspace_id: workspace};
  const sandbox = useQuery({
    queryKey: [workspace, 'sandbox'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/sandbox', {path, signal}),
    refetchInterval: 5_000,
  });
  const again = () => refreshSoon([workspace, 'sandbox']);
  const warming = useMutation({mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/sandbox', {path}), onSuccess: again});
  const releasing = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/sandbox', {path}),
    onSuccess: () => { setAsks(false); again(); },
  });
  const state = sandbox.data?.state ?? '';
  return (
    <div className="page sandbox">
      <header className="page-head">
        <h1>Sandbox</h1>
        {sandbox.data && <Badge tone={TONES[state] ?? 'neutral'}>{state}</Badge>}
        <span className="spacer" />
        {may('run') && state !== 'ready' && <Button icon="play" onClick={() => warming.mutate()} disabled={warming.isPending || state === 'starting'}>Warm it up</Button>}
        {may('write') && state === 'ready' && <Button look="danger" icon="stop" onClick={() => setAsks(true)}>End it</Button>}
      </header>
      {sandbox.isPending && <Loading what="the state of the sandbox" />}
      {[sandbox, warming].map((one, key) => one.isError && <Failure key={key} error={one.error} />)}
      {sandbox.data && <p className="lead">{sandbox.data.reason ?? WORDS[state]}{sandbox.data.since && <span className="faint"> Since <Ago at={sandbox.data.since} />.</span>}</p>}
      <AtWork workspace={workspace} mayStop={may('converse')} />
      {may('write') ? <Terminal workspace={workspace} /> : <p className="faint">Running a command needs the right to write.</p>}
      {asks && (
        <Dialog title="End the sandbox?" onClose={() => setAsks(false)}>
          <p>All that runs in it ends, also the commands of agents: they are told that their command was interrupted. Files stay.</p>
          {releasing.isError && <Failure error={releasing.error} />}
          <div className="dialog-foot"><Button look="danger" onClick={() => releasing.mutate()} disabled={releasing.isPending}>End it</Button></div>
        </Dialog>
      )}
    </div>
  );
}

/** The agents whose commands may run here now: their chats show which, and are stopped from here. */
function AtWork({workspace, mayStop}: {workspace: string; mayStop: boolean}) {
  const chats = useQuery({
    queryKey: [workspace, 'chats', 'at work'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/chats', {path: {workspace_id: workspace}, query: {limit: 50}, signal}),
  });
  const stopping = useMutation({mutationFn: (chat: string) => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop', {path: {workspace_id: workspace, chat_id: chat}})});
  const running = chats.data?.chats.filter(chat => chat.status === 'running') ?? [];
  if (chats.isError) return <Failure error={chats.error} retry={() => void chats.refetch()} />;
  if (running.length === 0) return null;
  return (
    <section aria-label="Agents at work">
      <h2>Agents at work</h2>
      <ul className="rows-list">
        {running.map(chat => (
          <li key={chat.chat_id} className="list-row">
            <a className="grow" href={href(workspace, 'chats', [chat.chat_id])}>{chat.title}</a>
            {mayStop && <IconButton label={`Stop ${chat.title}`} icon="stop" onClick={() => stopping.mutate(chat.chat_id)} disabled={stopping.isPending} />}
          </li>
        ))}
      </ul>
      {stopping.isError && <Failure error={stopping.error} />}
    </section>
  );
}

interface Ran {
  /** The idempotency key: a page that was loaded anew asks for the same run, and starts no second one. */
  key: string;
  command: string;
  result?: {output: string; success: boolean};
}
/** The most commands that the terminal keeps, and the most characters of the output of one. */
const KEPT = 30;
const LONGEST = 20_000;

/** How long the hub answers the same to the same key, with an hour to spare, in milliseconds. After that the command would run once more. */
const ANSWERED_MS = 23 * 3_600_000;
/** When a command was given, in milliseconds since 1970. */
const begunAt = ({key}: Ran): number => Number.parseInt(key.split('-')[1] ?? '', 36) || 0;

function Terminal({workspace}: {workspace: string}) {
  const [command, setCommand] = useDraft(`${workspace}/terminal`);
  const [{runs}, change] = useFields(`${workspace}/terminal/runs`, {runs: [] as Ran[]});
  const latest = useRef(runs);
  latest.current = runs;
  const asked = useRef(new Set<string>());
  const isThere = useRef(true);
  useEffect(() => {
    isThere.current = true;
    return () => { isThere.current = false; };
  }, []);
  const [back, setBack] = useState(0);
  /** The words that were there before the first step back in the history. */
  const words = useRef('');
  const end = useRef<HTMLDivElement>(null);
  // Two answers may come before the page is drawn again.
  const keep = (now: Ran[]) => {
    latest.current = now;
    change({runs: now});
  };
  const put = (run: Ran) => keep([...latest.current.filter(one => one.key !== run.key), run].slice(-KEPT));
  const answerTo = async (run: Ran): Promise<NonNullable<Ran['result']>> => {
    if (Date.now() - begunAt(run) > ANSWERED_MS) return {output: 'Its answer was not read within a day. It is not run again.', success: false};
    try {
      const body: Schemas['ToolCall'] = {tool: 'exec', args: {command: run.command}};
      const answer = await hub.post('/api/v1/workspaces/{workspace_id}/tools', {path: {workspace_id: workspace}, body, idempotencyKey: run.key});
      const output = answer.error ? [answer.output, answer.error.message, answer.error.hint].filter(Boolean).join('\n') : answer.output;
      return {output: output.slice(-LONGEST), success: answer.success};
    } catch (error) {
      const {title, hint} = told(error);
      return {output: `${title}\n${hint}`, success: false};
    }
  };
  const ask = async (run: Ran) => {
    if (asked.current.has(run.key)) return;
    asked.current.add(run.key);
    const result = await answerTo(run);
    // A page that was left asks again under this key when it is shown once more: by now its commands may be other ones.
    if (isThere.current && latest.current.some(one => one.key === run.key)) keep(latest.current.map(one => one.key === run.key ? {...one, result} : one));
  };
  useEffect(() => {
    runs.filter(run => run.result === undefined).forEach(run => void ask(run));
  }, [runs]);
  useEffect(() => {
    end.current?.scrollIntoView({block: 'nearest'});
  }, [runs.length]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (command.trim() === '') return;
    put({key: `console-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`, command: command.trim()});
    setCommand('');
    setBack(0);
  };
  const typed = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : 0;
    const to = back + step;
    if (step === 0 || to < 0 || to > runs.length || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (back === 0) words.current = command;
    setBack(to);
    setCommand(to === 0 ? words.current : runs[runs.length - to]!.command);
  };
  return (
    <section className="terminal" aria-label="Terminal">
      <div className="terminal-log" role="log" aria-label="Commands" tabIndex={0}>
        {runs.length === 0 && <p className="faint">Commands run beside the files of the workspace, which they read and do not change.</p>}
        {runs.map(({key, command: line, result}) => (
          <article key={key} aria-label={line}>
            <p className="terminal-line"><span aria-hidden="true">$ </span>{line}{!result && <> <Badge tone="busy">running</Badge></>}{result && !result.success && <> <Badge tone="bad">failed</Badge></>}</p>
            {result && result.output !== '' && <pre>{result.output}</pre>}
          </article>
        ))}
        <div ref={end} />
      </div>
      <form className="terminal-form" onSubmit={submit}>
        <span aria-hidden="true" className="mono">$</span>
        <input className="mono" aria-label="Command" placeholder="ls -l" value={command} autoComplete="off" spellCheck={false} onChange={event => setCommand(event.target.value)} onKeyDown={typed} />
        <Button look="primary" icon="play" type="submit" disabled={command.trim() === ''}>Run</Button>
        <Button look="quiet" onClick={() => keep(latest.current.filter(run => run.result === undefined))} disabled={runs.length === 0}>Clear</Button>
      </form>
    </section>
  );
}
