/** The tags of the workspace, and the files that have one of them. */
import {useQuery} from '@tanstack/react-query';
import {hub} from '../hub.ts';
import {Icon} from '../icons.tsx';
import {usePages} from '../paged.ts';
import {href, partsOf} from '../router.ts';
import {Ago, count, Empty, Failure, Loading, More} from '../ui.tsx';

export function TagsView({workspace, tag}: {workspace: string; tag: string | undefined}) {
  const tags = useQuery({
    queryKey: [workspace, 'files', 'tags'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/files/tags', {path: {workspace_id: workspace}, signal}),
  });
  return (
    <div className="page">
      <header className="page-head"><h1>Tags</h1></header>
      {tags.isPending && <Loading what="the tags" />}
      {tags.isError && <Failure error={tags.error} retry={() => void tags.refetch()} />}
      {tags.data?.tags.length === 0 && <Empty icon="tag" title="No file has a tag"><p>Tag a file in its view Links, or write <code>tags:</code> into the front matter of a Markdown file.</p></Empty>}
      {tags.data && tags.data.tags.length > 0 && (
        <ul className="chips" aria-label="Tags">
          {tags.data.tags.map(one => (
            <li key={one.tag}><a className="button small" href={href(workspace, 'files', [], {view: 'tags', tag: one.tag})} aria-current={one.tag === tag ? 'page' : undefined}>{one.tag} <span className="faint">{count(one.files)}</span></a></li>
          ))}
        </ul>
      )}
      {tags.data?.truncated && <p className="field-hint">There are more tags than are counted here.</p>}
      {tag !== undefined && <Tagged workspace={workspace} tag={tag} />}
    </div>
  );
}

function Tagged({workspace, tag}: {workspace: string; tag: string}) {
  const files = usePages({
    queryKey: [workspace, 'files', 'tagged', tag],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/files/tags/{tag}', {path: {workspace_id: workspace, tag}, query: {limit: 100, ...cursor}, signal}),
    itemsOf: page => page.files,
  });
  const list = files.items ?? [];
  return (
    <section aria-label={`Files with the tag ${tag}`}>
      <h2>{tag}</h2>
      {files.isPending && <Loading what="the files" />}
      {files.isError && <Failure error={files.error} retry={() => void files.refetch()} />}
      {files.items?.length === 0 && !files.hasNextPage && <p className="faint">No file has this tag now.</p>}
      {list.length > 0 && (
        <ul className="rows-list entries">
          {list.map(file => (
            <li key={file.file_id}>
              <a href={href(workspace, 'files', partsOf(file.path))}>
                <Icon name={file.kind === 'folder' ? 'folder' : 'file'} />
                <span className="grow">{file.path}</span>
                <span className="faint entry-at"><Ago at={file.updated_at} /></span>
              </a>
            </li>
          ))}
        </ul>
      )}
      <More list={files} />
    </section>
  );
}
