/** Who may do what at a path, with the policy that decides and why. */
import {useQuery} from '@tanstack/react-query';
import {hub} from '../hub.ts';
import {useRights} from '../rights.ts';
import {href, partsOf} from '../router.ts';
import {useFields, useView} from '../store.ts';
import {Badge, Button, Failure, Field, Loading} from '../ui.tsx';

const TONES = {permit: 'good', deny: 'bad', ask: 'ask'} as const;
const WORDS: Record<string, string> = {permit: 'yes', deny: 'no', ask: 'a person is asked'};

export function Access({workspace}: {workspace: string}) {
  const {may} = useRights(workspace);
  const [fields, change] = useFields(`${workspace}/access`, {path: '/projects', principal: 'me'});
  const [asked, setAsked] = useView<typeof fields | undefined>(`access/${workspace}`, undefined);
  const at = {workspace_id: workspace};
  const personas = useQuery({
    queryKey: [workspace, 'personas'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/agents', {path: at, signal}),
  });
  const members = useQuery({
    queryKey: [workspace, 'members'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/members', {path: at, query: {limit: 200}, signal}),
  });
  const access = useQuery({
    // Below the files: a policy is one of them.
    queryKey: [workspace, 'files', 'access', asked],
    enabled: asked !== undefined,
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/access', {path: at, query: asked!, signal}),
  });
  const listed = ['me', 'task', ...(personas.data?.agents ?? []).map(one => `agent:${one.name}`), ...(may('administer') ? members.data?.members ?? [] : []).map(one => `user:${one.user_id}`)];
  const isListed = listed.includes(fields.principal);
  // Decisions beside another question than theirs would be read as its own.
  const isAnswer = asked?.path === fields.path && asked.principal === fields.principal;
  return (
    <section aria-label="Who may do what">
      <header className="page-head"><h2>Who may do what, and why</h2></header>
      <form className="access-form" onSubmit={event => {
        event.preventDefault();
        setAsked(fields);
      }}>
        <Field label="Path" hint="Nothing needs to be there."><input className="mono" required pattern="/.*" value={fields.path} onChange={event => change({path: event.target.value})} /></Field>
        <Field label="Who">
          <select value={fields.principal} onChange={event => change({principal: event.target.value})}>
            <option value="me">You</option>
            <option value="task">A task of yours</option>
            {personas.data?.agents.map(one => <option key={one.name} value={`agent:${one.name}`}>{`The agent ${one.name}, for you`}</option>)}
            {/* One that is not listed: the select would show another one than is asked about. */}
            {!isListed && <option value={fields.principal}>{fields.principal.replace(/^[a-z]+:/, '')}</option>}
            {may('administer') && members.data?.members.map(one => <option key={one.user_id} value={`user:${one.user_id}`}>{one.subject ?? one.user_id}</option>)}
          </select>
        </Field>
        <Button type="submit" look="primary" disabled={access.isFetching}>Explain</Button>
      </form>
      {isAnswer && access.isPending && <Loading what="the decisions" />}
      {access.isError && isAnswer && <Failure error={access.error} retry={() => void access.refetch()} />}
      {access.data && isAnswer && (
        <div className="scroll" tabIndex={0} role="region" aria-label={`Decisions on ${access.data.path}`}>
          <table className="wide decisions">
            <thead><tr><th>Action</th><th>Decision</th><th>Policy</th><th>Why</th></tr></thead>
            <tbody>
              {access.data.decisions.map(one => (
                <tr key={one.action}>
                  <td>{one.action}</td>
                  <td><Badge tone={TONES[one.decision as keyof typeof TONES] ?? 'neutral'}>{WORDS[one.decision] ?? one.decision}</Badge></td>
                  <td><Policy workspace={workspace} policy={one.policy} /></td>
                  <td>{one.why}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** A policy of the workspace leads to its file; a built-in one has a name alone. */
function Policy({workspace, policy}: {workspace: string; policy: string}) {
  const [file, id] = policy.split('#');
  if (id === undefined || !file!.startsWith('/')) return <code>{policy}</code>;
  return <a href={href(workspace, 'files', partsOf(file!))}><code>{policy}</code></a>;
}
