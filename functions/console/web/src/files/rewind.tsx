/** Going back: a folder as it was at a time. */
import {href, partsOf} from '../router.ts';
import {useDraft} from '../store.ts';
import {Button, Field} from '../ui.tsx';
import {Crumbs} from './page.tsx';
import {TakeBack} from './takeback.tsx';

const PAST: [string, number][] = [['15 minutes ago', 15], ['An hour ago', 60], ['A day ago', 1440], ['A week ago', 10_080]];

/** A time as `datetime-local` has it: in the zone of the person, to the second. */
function local(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function RewindView({workspace, path}: {workspace: string; path: string}) {
  const [typed, setTyped] = useDraft(`rewind/${workspace}${path}`);
  const time = Number.isNaN(Date.parse(typed)) ? undefined : new Date(typed).toISOString();
  return (
    <div className="page rewind">
      <header className="page-head">
        <Crumbs workspace={workspace} path={path} />
        <span className="spacer" />
        <a className="button quiet" href={href(workspace, 'files', partsOf(path))} onClick={() => setTyped('')}>Back to the folder</a>
      </header>
      <h2>Go back</h2>
      <p className="lead">{path === '/' ? 'All files' : <>Everything in <code>{path}</code></>} as it was at a time. Each step makes a new version, so nothing is lost, and going back can be undone.</p>
      <Field label="The time" hint="In your own time zone. Records of changes are kept for 30 days.">
        <input type="datetime-local" step={1} max={local(new Date())} value={typed} onChange={event => setTyped(event.target.value)} />
      </Field>
      <div className="choices">{PAST.map(([name, minutes]) => <Button key={name} className="small" onClick={() => setTyped(local(new Date(Date.now() - minutes * 60_000)))}>{name}</Button>)}</div>
      {time !== undefined && <TakeBack key={`${path} ${time}`} workspace={workspace} wanted={{scope: path === '/' ? {kind: 'workspace'} : {kind: 'path', path}, to: {time}}} nothing="Nothing has changed since then" />}
    </div>
  );
}
