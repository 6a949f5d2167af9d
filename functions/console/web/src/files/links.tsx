/** The tags of a file, its links in both directions, and the files around it as a graph. */
import {useMutation, useQuery, useQueryClient} from '@tanstack/react-query';
import {lazy, Suspense} from 'react';
import {hub, type Schemas} from '../hub.ts';
import {useRights} from '../rights.ts';
import {go, href, partsOf} from '../router.ts';
import {useDraft, useFields, useView} from '../store.ts';
import {Badge, Button, counted, Empty, Failure, Field, IconButton, Loading} from '../ui.tsx';
import {useFolder, type Info} from './data.ts';

const NetworkGraph = lazy(() => import('./network.tsx'));
/** Links in a text change with the text; explicit ones are removed here. */
const OF_TEXTS = ['markdown', 'wiki'];
const KINDS = ['related', 'implements', 'answers', 'derived_from'];

export function LinksView({workspace, info}: {workspace: string; info: Info}) {
  const [depth, setDepth] = useView(`links/${info.file_id}`, 2);
  const path = {workspace_id: workspace, file_id: info.file_id};
  const relations = useQuery({
    queryKey: [workspace, 'files', 'links', info.file_id],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/files/{file_id}/links', {path, signal}),
  });
  const network = useQuery({
    queryKey: [workspace, 'files', 'network', info.file_id, depth],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/files/{file_id}/network', {path, query: {depth, limit: 120}, signal}),
  });
  const isAlone = network.data?.nodes.length === 1;
  return (
    <div className="flow-body">
      <div>
        {network.isPending && <Loading what="the files around it" />}
        {network.isError && <Failure error={network.error} retry={() => void network.refetch()} />}
        {isAlone && <Empty icon="flow" title="No file is linked with this one"><p>Link it on the right, or write <code>[[name]]</code> into a Markdown file.</p></Empty>}
        {network.data && !isAlone && (
          <Suspense fallback={<Loading what="the graph" />}>
            <NetworkGraph network={network.data} onChoose={to => go(href(workspace, 'files', partsOf(to), {view: 'links'}))} />
          </Suspense>
        )}
      </div>
      <aside className="flow-side" aria-label="Tags and links">
        <section>
          <h2>Around it</h2>
          <Field label="How far" hint={network.data?.truncated ? 'There are more files than are shown.' : undefined}>
            <select value={depth} onChange={event => setDepth(Number(event.target.value))}>
              {[1, 2, 3, 4, 5].map(links => <option key={links} value={links}>{counted(links, 'link')}</option>)}
            </select>
          </Field>
        </section>
        {relations.isPending && <Loading what="tags and links" />}
        {relations.isError && <Failure error={relations.error} retry={() => void relations.refetch()} />}
        {relations.data && <Related workspace={workspace} info={info} relations={relations.data} />}
      </aside>
    </div>
  );
}

function Related({workspace, info, relations}: {workspace: string; info: Info; relations: Schemas['Relations']}) {
  const client = useQueryClient();
  const {may} = useRights(workspace);
  const path = {workspace_id: workspace, file_id: info.file_id};
  const [tag, setTag] = useDraft(`tag/${workspace}/${info.file_id}`);
  // The link is a draft while its form is open: a reload opens it again.
  const [link, change, clear] = useFields<NewLink>(`link/${workspace}/${info.file_id}`, {isOpen: false, to: '', kind: KINDS[0]!});
  const again = () => client.invalidateQueries({queryKey: [workspace, 'files']});
  const tagging = useMutation({
    mutationFn: ({add, remove}: {add?: string; remove?: string}) => add !== undefined
      ? hub.post('/api/v1/workspaces/{workspace_id}/files/{file_id}/tags', {path, body: {tags: [add]}})
      : hub.delete('/api/v1/workspaces/{workspace_id}/files/{file_id}/tags', {path, query: {tag: remove!}}),
    onSuccess: () => { setTag(''); return again(); },
  });
  const unlinking = useMutation({
    mutationFn: ({to, kind}: {to: string; kind: string}) => hub.delete('/api/v1/workspaces/{workspace_id}/files/{file_id}/links', {path, query: {to, kind}}),
    onSuccess: again,
  });
  return (
    <>
      <section>
        <h2>Tags</h2>
        <ul className="chips" aria-label="Tags">
          {relations.tags.map(one => (
            <li key={one}><a className="button small" href={href(workspace, 'files', [], {view: 'tags', tag: one})}>{one}</a>{may('write') && <IconButton label={`Remove the tag ${one}`} icon="close" onClick={() => tagging.mutate({remove: one})} />}</li>
          ))}
          {relations.tags.length === 0 && <li className="faint">none</li>}
        </ul>
        {may('write') && (
          <form className="inline-form" onSubmit={event => { event.preventDefault(); tagging.mutate({add: tag.trim()}); }}>
            <input aria-label="New tag" value={tag} maxLength={64} placeholder="draft" onChange={event => setTag(event.target.value)} />
            <Button type="submit" className="small" disabled={tagging.isPending || tag.trim() === ''}>Add</Button>
          </form>
        )}
        {tagging.isError && <Failure error={tagging.error} />}
      </section>
      <section>
        <h2>Links from here</h2>
        <Ends workspace={workspace} links={relations.links} name="Links from here" remove={may('write') ? link => unlinking.mutate({to: link.file!.file_id, kind: link.kind}) : undefined} />
        {unlinking.isError && <Failure error={unlinking.error} />}
        {may('write') && (link.isOpen
          ? <LinkForm workspace={workspace} info={info} link={link} change={change} onClose={clear} />
          : <Button className="small" icon="plus" onClick={() => change({isOpen: true})}>Link a file</Button>)}
      </section>
      <section>
        <h2>Links to here</h2>
        <Ends workspace={workspace} links={relations.backlinks} name="Links to here" />
        {relations.truncated && <p className="field-hint">There may be more.</p>}
      </section>
    </>
  );
}

function Ends({workspace, links, name, remove}: {workspace: string; links: Schemas['Link'][]; name: string; remove?: ((link: Schemas['Link']) => void) | undefined}) {
  if (links.length === 0) return <p className="faint">none</p>;
  return (
    <ul className="ends" aria-label={name}>
      {links.map((link, key) => (
        <li key={key}>
          <Badge>{link.kind}</Badge>
          {link.file
            ? <a className="grow" href={href(workspace, 'files', partsOf(link.file.path), {view: 'links'})}>{link.file.path}</a>
            : <span className="grow fault">{link.target} leads nowhere</span>}
          {remove && link.file && !OF_TEXTS.includes(link.kind) && <IconButton label={`Remove the link to ${link.file.path}`} icon="close" onClick={() => remove(link)} />}
        </li>
      ))}
    </ul>
  );
}

interface NewLink {
  isOpen: boolean;
  to: string;
  kind: string;
}

function LinkForm({workspace, info, link: {to, kind}, change, onClose}: {
  workspace: string; info: Info; link: NewLink; change: (some: Partial<NewLink>) => void; onClose: () => void;
}) {
  const client = useQueryClient();
  // Paths of the folder that is being typed.
  const near = useFolder(workspace, to.replace(/\/[^/]*$/, '') || '/', to.startsWith('/'));
  const linking = useMutation({
    mutationFn: async () => {
      const at = {workspace_id: workspace};
      const target = await hub.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: at, query: {path: to}});
      return hub.post('/api/v1/workspaces/{workspace_id}/files/{file_id}/links', {path: {...at, file_id: info.file_id}, body: {to: target.file_id, kind}});
    },
    onSuccess: async () => {
      await client.invalidateQueries({queryKey: [workspace, 'files']});
      onClose();
    },
  });
  return (
    <form onSubmit={event => { event.preventDefault(); linking.mutate(); }}>
      <Field label="Path">
        <input className="mono" value={to} required pattern="/.+" autoFocus list="near" placeholder="/projects/plan.md" onChange={event => change({to: event.target.value})} />
      </Field>
      <datalist id="near">{near.data?.slice(0, 50).map(one => <option key={one.file_id} value={one.path} />)}</datalist>
      <Field label="Kind">
        <input value={kind} required pattern="[a-z0-9_]+" list="kinds" onChange={event => change({kind: event.target.value})} />
      </Field>
      <datalist id="kinds">{KINDS.map(one => <option key={one} value={one} />)}</datalist>
      {linking.isError && <Failure error={linking.error} />}
      <div className="dialog-foot">
        <Button look="quiet" onClick={onClose}>Cancel</Button>
        <Button look="primary" type="submit" disabled={linking.isPending}>Link it</Button>
      </div>
    </form>
  );
}
