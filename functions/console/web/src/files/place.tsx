/** Moving something to another path, and putting it into the trash. */
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {useState} from 'react';
import {hub} from '../hub.ts';
import {go, href, partsOf} from '../router.ts';
import {useDraft} from '../store.ts';
import {Button, Dialog, Failure, Field, IconButton} from '../ui.tsx';
import type {Info} from './data.ts';

export function MoveAndRemove({workspace, info}: {workspace: string; info: Info}) {
  const client = useQueryClient();
  // The path is a draft while its dialog is open: a reload opens it again.
  const [to, setTo] = useDraft(`move/${workspace}/${info.file_id}`);
  const [dialog, setDialog] = useState<'move' | 'remove' | undefined>(to === '' ? undefined : 'move');
  const path = {workspace_id: workspace, file_id: info.file_id};
  const close = () => {
    setTo('');
    setDialog(undefined);
  };
  const done = (place: string) => async () => {
    close();
    go(href(workspace, 'files', partsOf(place)));
    await client.invalidateQueries({queryKey: [workspace, 'files']});
  };
  const moving = useMutation({mutationFn: () => hub.patch('/api/v1/workspaces/{workspace_id}/files/{file_id}', {path, body: {path: to}}), onSuccess: done(to)});
  const removing = useMutation({
    mutationFn: () => hub.delete('/api/v1/workspaces/{workspace_id}/files/{file_id}', {path}),
    onSuccess: done(info.path.replace(/\/[^/]*$/, '')),
  });
  return (
    <>
      <IconButton label="Move or rename" icon="edit" onClick={() => { setTo(info.path); setDialog('move'); }} />
      <IconButton label="Move to the trash" icon="trash" onClick={() => setDialog('remove')} />
      {dialog === 'move' && (
        <Dialog title="Move or rename" onClose={close}>
          <form onSubmit={event => { event.preventDefault(); moving.mutate(); }}>
            <Field label="New path" hint="Its history and the links to it move along."><input className="mono" value={to} required pattern="/.+" onChange={event => setTo(event.target.value)} /></Field>
            {moving.isError && <Failure error={moving.error} />}
            <div className="dialog-foot"><Button look="primary" type="submit" disabled={moving.isPending || to === info.path}>Move</Button></div>
          </form>
        </Dialog>
      )}
      {dialog === 'remove' && (
        <Dialog title={`Move ${info.name} to the trash?`} onClose={() => setDialog(undefined)}>
          <p>{info.kind === 'folder' ? 'All in it goes along. ' : ''}It can be restored from the trash.</p>
          {removing.isError && <Failure error={removing.error} />}
          <div className="dialog-foot"><Button look="danger" onClick={() => removing.mutate()} disabled={removing.isPending}>Move to the trash</Button></div>
        </Dialog>
      )}
    </>
  );
}
