/** A file: its text in an editor, its looks, its history. A version that somebody else wrote is never overwritten unseen. */
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {lazy, Suspense, useEffect, useRef, useState} from 'react';
import {hub, isRefused} from '../hub.ts';
import {Markdown} from '../markdown.tsx';
import {useAuthors} from '../names.ts';
import {usePages} from '../paged.ts';
import {useRights} from '../rights.ts';
import {href, partsOf, useChoice} from '../router.ts';
import {useAtRisk, useDraft, useView} from '../store.ts';
import {Ago, Badge, Button, bytes, Empty, Failure, Loading, More} from '../ui.tsx';
import {download, useContent, type Info} from './data.ts';
import {ConversionBadge, DocumentView, isReadable, NoText} from './document.tsx';
import {LinksView} from './links.tsx';
import {Crumbs} from './page.tsx';
import {MoveAndRemove} from './place.tsx';

const Editor = lazy(() => import('./editor.tsx').then(made => ({default: made.Editor})));
const DiffEditor = lazy(() => import('./editor.tsx').then(made => ({default: made.DiffEditor})));
const LARGEST_DRAFT = 500_000;

export function FileView({workspace, info, view}: {workspace: string; info: Info; view: string}) {
  const isMarkdown = /\.(md|markdown)$/i.test(info.name) || info.kind === 'projection';
  const content = useContent(workspace, info, info.v);
  /** The text with its version. While that of another version is read, the editor stays with the one before: it may have words that no draft keeps. */
  const loaded = useRef<{info: Info; text: string}>(undefined);
  if (content.data?.kind === 'text') loaded.current = {info, text: content.data.text};
  const known = content.data === undefined || content.data.kind === 'text' ? loaded.current : undefined;
  const text = known?.info.file_id === info.file_id ? known : undefined;
  const isDocument = !isMarkdown && isReadable(info);
  const shown = view === '' ? (isMarkdown || isDocument ? 'read' : 'edit') : view;
  const tabs: [string, string][] = [...(isMarkdown || isDocument ? [['read', 'Read'] as [string, string]] : []), ['edit', 'Edit'], ['history', 'History'], ['links', 'Links']];
  const at = (to: string) => href(workspace, 'files', partsOf(info.path), {view: to});
  const downloading = useMutation({mutationFn: () => download(workspace, info)});
  const {may} = useRights(workspace);
  if (info.kind === 'projection') return <Projection workspace={workspace} info={info} />;
  return (
    <div className="file">
      <header className="page-head file-head">
        <Crumbs workspace={workspace} path={info.path} />
        <span className="spacer" />
        <ConversionBadge conversion={info.conversion} />
        <Badge>v{info.v}</Badge>
        <span className="faint file-facts">{bytes(info.size)} · <Ago at={info.updated_at} /></span>
        <Button look="quiet" className="small" onClick={() => downloading.mutate()} disabled={downloading.isPending}>Download</Button>
        {may('write') && <MoveAndRemove workspace={workspace} info={info} />}
      </header>
      <nav className="tabs" aria-label="Views of the file">
        {tabs.map(([key, name]) => <a key={key} href={at(key)} aria-current={shown === key || (key === 'history' && shown === 'diff') ? 'page' : undefined}>{name}</a>)}
      </nav>
      {downloading.isError && <Failure error={downloading.error} />}
      {content.isError && <Failure error={content.error} retry={() => void content.refetch()} />}
      <Suspense fallback={<Loading what="the editor" />}>
        {shown === 'links' ? <LinksView workspace={workspace} info={info} />
          : shown === 'history' || shown === 'diff' ? <History workspace={workspace} info={info} />
          : shown === 'read' && isDocument ? <DocumentView workspace={workspace} info={info} />
          : content.isPending && !text ? <Loading what="the content" />
          : content.data?.kind === 'image' ? <Picture blob={content.data.blob} name={info.name} />
          : !text ? <NoText info={info} size={bytes(info.size)} />
          : shown === 'read' ? <div className="reader"><Markdown text={text.text.replace(/^---\n[\s\S]*?\n---\n/, '')} workspace={workspace} /></div>
          : <Edit key={info.file_id} workspace={workspace} info={text.info} text={text.text} isReadOnly={!may('write')} />}
      </Suspense>
    </div>
  );
}

/** An image. Its address holds the bytes until it is revoked, so it ends with the part of the page that shows it. */
function Picture({blob, name}: {blob: Blob; name: string}) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return <div className="image-view">{url !== undefined && <img src={url} alt={name} />}</div>;
}

function Projection({workspace, info}: {workspace: string; info: Info}) {
  const chat = /\/chats\/([0-9a-f-]{36})/.exec(info.path)?.[1] ?? info.file_id;
  return (
    <Empty icon="chat" title={info.name}>
      <p>This file is a conversation. It is written by its chat.</p>
      <a className="button primary" href={href(workspace, 'chats', [chat])}>Open the chat</a>
    </Empty>
  );
}

/** The editor. A draft has the version it began with, so that a later save knows whether it is stale. */
function Edit({workspace, info, text, isReadOnly}: {workspace: string; info: Info; text: string; isReadOnly: boolean}) {
  const client = useQueryClient();
  const [kept, keep] = useDraft(`file/${workspace}/${info.file_id}`);
  const draft: {v: number; text: string} | undefined = kept === '' ? undefined : JSON.parse(kept);
  const [long, setLong] = useState<{v: number; text: string}>();
  useAtRisk(long !== undefined);
  const edited = long ?? draft;
  /** The text as it is when a request has been answered. */
  const latest = useRef(edited);
  latest.current = edited;
  const [compares, setCompares] = useView(`compare/${info.file_id}`, false);
  // The editor takes a text from elsewhere only while nobody has typed into it. A version that was saved here is its own text, and `taken` has it before
  // the page has read of it.
  const [taken, setTaken] = useState({v: info.v, revision: 0, text});
  const take = () => setTaken(({revision}) => ({v: info.v, revision: revision + 1, text}));
  useEffect(() => {
    if (!edited && taken.v < info.v) take();
  }, [edited, info.v, text, taken.v]);
  const base = edited?.v ?? info.v;
  const isStale = edited !== undefined && edited.v !== info.v && taken.v <= info.v;
  const forget = () => {
    latest.current = undefined;
    keep('');
    setLong(undefined);
    setCompares(false);
  };
  const saving = useMutation({
    mutationFn: ({content, v}: {content: string; v: number}) => hub.put('/api/v1/workspaces/{workspace_id}/files/{file_id}', {
      path: {workspace_id: workspace, file_id: info.file_id}, body: {content}, headers: {'if-match': `"${v}"`},
    }),
    onSuccess: async (change, {content}) => {
      client.setQueryData([workspace, 'content', info.file_id, change.v], {kind: 'text', text: content});
      client.setQueryData([workspace, 'files', 'info', info.path], {...info, v: change.v, size: change.size, updated_at: change.at, author: change.author});
      // The editor has this text, unless it was discarded meanwhile.
      const isDiscarded = latest.current === undefined;
      setTaken(({revision}) => ({v: change.v, revision: isDiscarded ? revision + 1 : revision, text: content}));
      // Words that were typed meanwhile are a draft over the new version.
      const now = latest.current?.text ?? content;
      if (now === content) forget();
      else put({v: change.v, text: now});
      await client.invalidateQueries({queryKey: [workspace, 'files']});
    },
    onError: error => {
      if (isRefused(error, 'STALE_VERSION')) void client.invalidateQueries({queryKey: [workspace, 'files', 'info', info.path]});
    },
  });
  const put = (next: {v: number; text: string}) => {
    latest.current = next;
    const isLong = next.text.length > LARGEST_DRAFT;
    setLong(isLong ? next : undefined);
    keep(isLong ? '' : JSON.stringify(next));
  };
  const changed = (now: string) => {
    if (now === text && base === info.v && !saving.isPending) forget();
    else put({v: base, text: now});
  };
  const save = () => {
    if (edited && !saving.isPending && !isStale) saving.mutate({content: edited.text, v: base});
  };
  const takeTheirs = () => {
    forget();
    take();
  };
  return (
    <div className="edit">
      {isStale && (
        <div className="notice error" role="alert">
          <div><p><strong>There is a newer version {info.v}, and you began with version {edited.v}.</strong> Nothing is overwritten until you say so.</p></div>
          <Button className="small" onClick={() => setCompares(!compares)}>{compares ? 'Back to mine' : 'Compare'}</Button>
          <Button className="small" onClick={() => saving.mutate({content: edited.text, v: info.v})} disabled={saving.isPending}>Save mine as version {info.v + 1}</Button>
          <Button className="small" look="danger" onClick={takeTheirs}>Take theirs</Button>
        </div>
      )}
      {saving.isError && !isRefused(saving.error, 'STALE_VERSION') && <Failure error={saving.error} retry={save} />}
      {compares && edited
        ? <DiffEditor path={info.path} before={text} after={edited.text} />
        : <Editor path={info.path} text={edited?.text ?? taken.text} revision={`${taken.revision}`} isReadOnly={isReadOnly} onChange={changed} onSave={save} />}
      <footer className="edit-foot">
        <span className="faint" role="status">{isReadOnly ? 'You can read this file. Changing it needs the right to write.' : saving.isPending ? 'Saving…' : long ? 'Not saved, and too long for a draft: leaving the editor loses it.' : edited ? 'Not saved. Your draft is kept in this browser.' : `Version ${info.v}, saved`}</span>
        <span className="spacer" />
        {edited && !isStale && <Button look="quiet" onClick={takeTheirs}>Discard</Button>}
        {!isReadOnly && <Button look="primary" icon="save" onClick={save} disabled={!edited || isStale || saving.isPending}>Save</Button>}
      </footer>
    </div>
  );
}

function History({workspace, info}: {workspace: string; info: Info}) {
  const client = useQueryClient();
  const {may} = useRights(workspace);
  const [chosen, choose] = useChoice('v');
  const authorOf = useAuthors(workspace);
  const path = {workspace_id: workspace, file_id: info.file_id};
  const versions = usePages({
    queryKey: [workspace, 'files', 'versions', info.file_id],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/files/{file_id}/versions', {path, query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.versions,
  });
  const v = Number(chosen) || info.v;
  const after = useContent(workspace, info, v);
  const before = useContent(workspace, info, v - 1, v > 1);
  const restoring = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore', {path: {...path, v}, headers: {'if-match': `"${info.v}"`}}),
    onSuccess: async () => {
      await client.invalidateQueries({queryKey: [workspace, 'files']});
      choose(undefined);
    },
  });
  const textOf = (content: typeof after.data) => content?.kind === 'text' ? content.text : undefined;
  const [now, old] = [textOf(after.data), v > 1 ? textOf(before.data) : ''];
  return (
    <div className="history">
      {versions.isError && <Failure error={versions.error} retry={() => void versions.refetch()} />}
      <ol className="versions" aria-label="Versions">
        {versions.items?.map(one => (
          <li key={one.v}>
            <button type="button" aria-current={one.v === v ? 'true' : undefined} onClick={() => choose(`${one.v}`)}>
              <strong>Version {one.v}</strong>
              <span className="faint">{authorOf(one.author)} · <Ago at={one.at} /></span>
            </button>
          </li>
        ))}
        {versions.hasNextPage && <li><More list={versions} /></li>}
      </ol>
      <section className="version" aria-label={`Version ${v}`}>
        <header>
          <h2>{v > 1 ? `Version ${v} against version ${v - 1}` : 'The first version'}</h2>
          <span className="spacer" />
          {v !== info.v && may('write') && <Button icon="history" onClick={() => restoring.mutate()} disabled={restoring.isPending}>Restore version {v}</Button>}
        </header>
        {restoring.isError && <Failure error={restoring.error} />}
        {now !== undefined && old !== undefined
          ? <DiffEditor path={info.path} before={old} after={now} />
          : after.isPending || (v > 1 && before.isPending) ? <Loading what="the version" /> : <Empty icon="file" title="This version is not shown here"><p>It is no text, or too long.</p></Empty>}
      </section>
    </div>
  );
}
