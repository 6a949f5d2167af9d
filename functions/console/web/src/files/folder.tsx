import {useMutation, useQueryClient} from '@tanstack/react-query';
import {upload} from 'buildscale';
import {useRef, useState, type DragEvent} from 'react';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useAuthors} from '../names.ts';
import {useRights} from '../rights.ts';
import {go, href, partsOf} from '../router.ts';
import {useAtRisk, useFields} from '../store.ts';
import {Ago, Button, bytes, count, Dialog, Empty, Failure, Field, Loading} from '../ui.tsx';
import {MOST_ENTRIES, useFolder, type Info} from './data.ts';
import {ConversionBadge} from './document.tsx';
import {chosenIn, droppedIn, type Chosen} from './chosen.ts';
import {Crumbs} from './page.tsx';
import {MoveAndRemove} from './place.tsx';

/** What the types of React do not know: the input takes a folder with all that is in it. */
const WHOLE = {webkitdirectory: ''};
const join = (folder: string, name: string): string => `${folder === '/' ? '' : folder}/${name}`;

export function FolderView({workspace, path, info}: {workspace: string; path: string; info?: Info}) {
  const client = useQueryClient();
  const folder = useFolder(workspace, path);
  const {may} = useRights(workspace);
  const authorOf = useAuthors(workspace);
  // The name is a draft while its dialog is open: a reload opens it again.
  const [making, change, clear] = useFields<{kind: 'file' | 'folder' | ''; name: string}>(`make/${workspace}${path}`, {kind: '', name: ''});
  const [isOver, setOver] = useState(false);
  const [progress, setProgress] = useState<string>();
  const picker = useRef<HTMLInputElement>(null);
  const folderPicker = useRef<HTMLInputElement>(null);
  const again = () => client.invalidateQueries({queryKey: [workspace, 'files']});
  const uploading = useMutation({
    mutationFn: async (chosen: Chosen[] | Promise<Chosen[]>) => {
      const files = await chosen;
      for (const [at, {path: name, file}] of files.entries()) {
        const place = files.length > 1 ? ` (${at + 1} of ${files.length})` : '';
        const onProgress = (sent: number, size: number) => setProgress(`${name}${place}, ${Math.floor(100 * sent / Math.max(size, 1))} %`);
        onProgress(0, file.size);
        await upload(hub, {workspace, path: join(path, name)}, file, {onProgress});
      }
    },
    onSettled: () => { setProgress(undefined); return again(); },
  });
  useAtRisk(uploading.isPending);
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (may('write')) uploading.mutate(droppedIn(event.dataTransfer));
  };
  return (
    <div className={`page folder ${isOver ? 'over' : ''}`} onDragOver={event => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}>
      <header className="page-head">
        <Crumbs workspace={workspace} path={path} />
        <span className="spacer" />
        {may('write') && <>
          <Button icon="file" onClick={() => change({kind: 'file'})}>New file</Button>
          <Button icon="folder" onClick={() => change({kind: 'folder'})}>New folder</Button>
          <Button icon="clip" onClick={() => picker.current?.click()} disabled={uploading.isPending}>{uploading.isPending ? 'Uploading…' : 'Upload'}</Button>
          <Button icon="folder" onClick={() => folderPicker.current?.click()} disabled={uploading.isPending}>Upload a folder</Button>
          <a className="button" href={href(workspace, 'files', partsOf(path), {view: 'rewind'})}><Icon name="history" />Go back</a>
        </>}
        {!info && <a className="button quiet" href={href(workspace, 'files', [], {view: 'tags'})}><Icon name="tag" />Tags</a>}
        {!info && <a className="button quiet" href={href(workspace, 'files', [], {view: 'trash'})}><Icon name="trash" />Trash</a>}
        {info && may('write') && <MoveAndRemove workspace={workspace} info={info} />}
        <input ref={picker} type="file" multiple hidden onChange={event => { uploading.mutate(chosenIn(event.target.files)); event.target.value = ''; }} />
        <input ref={folderPicker} type="file" {...WHOLE} hidden onChange={event => { uploading.mutate(chosenIn(event.target.files)); event.target.value = ''; }} />
      </header>
      {progress !== undefined && <p className="notice" role="status">Uploading {progress}</p>}
      {uploading.isError && <Failure error={uploading.error} />}
      {folder.isError && <Failure error={folder.error} retry={() => void folder.refetch()} />}
      {folder.isPending && <Loading what="the folder" />}
      {folder.data?.length === 0 && <Empty icon="folder" title="This folder is empty"><p>{may('write') ? 'Make a file, or drop some here.' : 'Nothing was put here yet.'}</p></Empty>}
      {folder.data && folder.data.length > 0 && (
        <ul className="rows-list entries">
          {folder.data.map(entry => (
            <li key={entry.file_id}>
              <a href={href(workspace, 'files', partsOf(entry.path))}>
                <Icon name={entry.kind === 'folder' ? 'folder' : entry.kind === 'projection' ? 'chat' : 'file'} />
                <span className="grow">{entry.name}</span>
                <ConversionBadge conversion={entry.conversion} />
                <span className="faint entry-author">{entry.kind === 'file' ? authorOf(entry.author) : ''}</span>
                <span className="faint entry-size">{entry.kind === 'file' ? bytes(entry.size) : ''}</span>
                <span className="faint entry-at"><Ago at={entry.updated_at} /></span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {folder.data && folder.data.length >= MOST_ENTRIES && <p className="field-hint">A folder lists at most {count(MOST_ENTRIES)} entries. The search finds its other files.</p>}
      {making.kind !== '' && <Make workspace={workspace} path={path} kind={making.kind} name={making.name} onName={name => change({name})} onClose={clear} />}
    </div>
  );
}

function Make({workspace, path, kind, name, onName, onClose}: {
  workspace: string; path: string; kind: 'file' | 'folder'; name: string; onName: (name: string) => void; onClose: () => void;
}) {
  const client = useQueryClient();
  const making = useMutation({
    mutationFn: () => hub.post('/api/v1/workspaces/{workspace_id}/files', {
      path: {workspace_id: workspace}, body: {path: join(path, name.trim()), kind, ...(kind === 'file' ? {content: ''} : {})},
    }),
    onSuccess: async made => {
      await client.invalidateQueries({queryKey: [workspace, 'files']});
      onClose();
      go(href(workspace, 'files', partsOf(made.path)));
    },
  });
  return (
    <Dialog title={`New ${kind}`} onClose={onClose}>
      <form onSubmit={event => { event.preventDefault(); making.mutate(); }}>
        <Field label="Name" hint={`In ${path}`}><input value={name} required onChange={event => onName(event.target.value)} placeholder={kind === 'file' ? 'notes.md' : 'drafts'} /></Field>
        {making.isError && <Failure error={making.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={making.isPending || name.trim() === ''}>Make it</Button></div>
      </form>
    </Dialog>
  );
}
