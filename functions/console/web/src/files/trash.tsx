import {useMutation, useQueryClient} from '@tanstack/react-query';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {usePages} from '../paged.ts';
import {useRights} from '../rights.ts';
import {Ago, Button, Empty, Failure, Loading, More} from '../ui.tsx';

export function TrashView({workspace}: {workspace: string}) {
  const client = useQueryClient();
  const {may} = useRights(workspace);
  const trash = usePages({
    queryKey: [workspace, 'files', 'trash'],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/files/trash', {path: {workspace_id: workspace}, query: {limit: 200, ...cursor}, signal}),
    itemsOf: page => page.files,
  });
  const restoring = useMutation({
    mutationFn: (file: string) => hub.post('/api/v1/workspaces/{workspace_id}/files/{file_id}/restore', {path: {workspace_id: workspace, file_id: file}}),
    onSuccess: () => client.invalidateQueries({queryKey: [workspace, 'files']}),
  });
  return (
    <div className="page">
      <header className="page-head"><h1>Trash</h1></header>
      {trash.isPending && <Loading what="the trash" />}
      {trash.isError && <Failure error={trash.error} retry={() => void trash.refetch()} />}
      {restoring.isError && <Failure error={restoring.error} />}
      {trash.items?.length === 0 && !trash.hasNextPage && <Empty icon="trash" title="The trash is empty" />}
      {trash.items && trash.items.length > 0 && (
        <ul className="rows-list">
          {trash.items.map(file => (
            <li key={file.info.file_id} className="list-row">
              <Icon name={file.info.kind === 'folder' ? 'folder' : 'file'} />
              <span className="grow" title={file.info.path}>{file.info.path}</span>
              <span className="faint"><Ago at={file.at} /></span>
              {may('write') && <Button className="small" aria-label={`Restore ${file.info.path}`} onClick={() => restoring.mutate(file.info.file_id)} disabled={restoring.isPending}>Restore</Button>}
            </li>
          ))}
        </ul>
      )}
      <More list={trash} />
    </div>
  );
}
