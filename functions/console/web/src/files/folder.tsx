import {useMutation, useQueryClient} from '@tanstack/react-query';
import {useRef, useState, type DragEvent} from 'react';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {useRights} from '../rights.ts';
import {go, href, partsOf} from '../router.ts';
import {Ago, Button, bytes, Dialog, Empty, Failure, Field, Loading} from '../ui.tsx';
import {useFolder, type Info} from './data.ts';
import {Crumbs} from './page.tsx';
import {MoveAndRemove} from './place.tsx';

const join = (folder: string, name: string): string => `${folder === '/' ? '' : folder}/${name}`;

export function FolderView({workspace, path, info}: {workspace: string; path: string; info?: Info}) {
  const client = useQueryClient();
  const folder = useFolder(workspace, path);
  const {may} = useRights(workspace);
  const [making, setMaking] = useState<'file' | 'folder'>();
  const [isOver, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const again = () => client.invalidateQueries({queryKey: [workspace, 'files']});
  const uploading = useMutation({
    mutationFn: async (files: File[]) => {
      for (const file of files) {
        await hub.put('/api/v1/workspaces/{workspace_id}/files/by-path/content', {path: {workspace_id: workspace}, query: {path: join(path, file.name)}, body: file});
      }
    },
    onSettled: again,
  });
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (may('write')) uploading.mutate([...event.dataTransfer.files]);
  };
  return (
    <div className={`page folder ${isOver ? 'over' : ''}`} onDragOver={event => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={dropped}>
      <header className="page-head">
        <Crumbs workspace={workspace} path={path} />
        <span className="spacer" />
        {may('write') && <>
          <Button icon="file" onClick={() => setMaking('file')}>New file</Button>
          <Button icon="folder" onClick={() => setMaking('folder')}>New folder</Button>
          <Button icon="clip" onClick={() => picker.current?.click()} disabled={uploading.isPending}>{uploading.isPending ? 'Uploading…' : 'Upload'}</Button>
          {!info && <a className="button quiet" href={href(workspace, 'files', [], {view: 'trash'})}><Icon name="trash" />Trash</a>}
          {info && <MoveAndRemove workspace={workspace} info={info} />}
        </>}
        <input ref={picker} type="file" multiple hidden onChange={event => { uploading.mutate([...(event.target.files ?? [])]); event.target.value = ''; }} />
      </header>
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
                <span className="faint entry-author">{entry.kind === 'file' ? entry.author.replace(/^(user|agent):/, '').slice(0, 18) : ''}</span>
                <span className="faint entry-size">{entry.kind === 'file' ? bytes(entry.size) : ''}</span>
                <span className="faint entry-at"><Ago at={entry.updated_at} /></span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {making && <Make workspace={workspace} path={path} kind={making} onClose={() => setMaking(undefined)} />}
    </div>
  );
}

function Make({workspace, path, kind, onClose}: {workspace: string; path: string; kind: 'file' | 'folder'; onClose: () => void}) {
  const client = useQueryClient();
  const [name, setName] = useState('');
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
        <Field label="Name" hint={`In ${path}`}><input value={name} required autoFocus onChange={event => setName(event.target.value)} placeholder={kind === 'file' ? 'notes.md' : 'drafts'} /></Field>
        {making.isError && <Failure error={making.error} />}
        <div className="dialog-foot"><Button look="primary" type="submit" disabled={making.isPending || name.trim() === ''}>Make it</Button></div>
      </form>
    </Dialog>
  );
}
