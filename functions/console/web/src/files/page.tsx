/** Files: the explorer, and beside it a folder, a file or the trash. */
import {Icon} from '../icons.tsx';
import {href, partsOf, pathOf, type Place} from '../router.ts';
import {useView} from '../store.ts';
import {useTitle} from '../title.ts';
import {Empty, Failure, Loading, nameOf} from '../ui.tsx';
import {isGone} from '../chat/live.ts';
import {useFolder, useInfo} from './data.ts';
import {FileView} from './file.tsx';
import {FolderView} from './folder.tsx';
import {RewindView} from './rewind.tsx';
import {TagsView} from './tags.tsx';
import {TrashView} from './trash.tsx';

export default function FilesPage({workspace, place}: {workspace: string; place: Place}) {
  const path = pathOf(place.rest);
  const view = place.query.get('view') ?? '';
  const isOfAll = view === 'trash' || view === 'tags';
  useTitle(view === 'trash' ? 'Trash' : view === 'tags' ? place.query.get('tag') ?? 'Tags' : path === '/' ? undefined : nameOf(path));
  return (
    <div className="files">
      <nav className="explorer" aria-label="Folders">
        <ul className="tree">
          <Branch workspace={workspace} path="/" name="All files" current={isOfAll ? '' : path} depth={0} isOpen />
        </ul>
        <a className="tree-row trash-link" href={href(workspace, 'files', [], {view: 'tags'})} aria-current={view === 'tags' ? 'page' : undefined}><Icon name="tag" size={16} />Tags</a>
        <a className="tree-row trash-link" href={href(workspace, 'files', [], {view: 'trash'})} aria-current={view === 'trash' ? 'page' : undefined}><Icon name="trash" size={16} />Trash</a>
      </nav>
      <div className="files-main">
        {view === 'trash' ? <TrashView workspace={workspace} />
          : view === 'tags' ? <TagsView workspace={workspace} tag={place.query.get('tag') ?? undefined} />
          : <At key={path} workspace={workspace} path={path} view={view} />}
      </div>
    </div>
  );
}

/** A folder of the explorer; its content is asked for when it is opened. */
function Branch({workspace, path, name, current, depth, isOpen = false}: {workspace: string; path: string; name: string; current: string; depth: number; isOpen?: boolean}) {
  const [open, setOpen] = useView<boolean | undefined>(`folder/${workspace}${path}`, undefined);
  const leadsToCurrent = path !== '/' && (current === path || current.startsWith(`${path}/`));
  const shown = open ?? (isOpen || leadsToCurrent);
  const folder = useFolder(workspace, path, shown);
  return (
    <li>
      <div className="tree-line" style={{paddingLeft: 4 + depth * 14}}>
        <button type="button" className="tree-toggle" aria-expanded={shown} aria-label={`${shown ? 'Close' : 'Open'} ${name}`} onClick={() => setOpen(!shown)}><Icon name={shown ? 'down' : 'right'} size={14} /></button>
        <a className="tree-row" href={href(workspace, 'files', partsOf(path))} aria-current={current === path ? 'page' : undefined}><Icon name="folder" size={16} /><span className="grow">{name}</span></a>
      </div>
      {shown && (
        <ul>
          {folder.data?.map(entry => entry.kind === 'folder'
            ? <Branch key={entry.file_id} workspace={workspace} path={entry.path} name={entry.name} current={current} depth={depth + 1} />
            : (
              <li key={entry.file_id} className="tree-line" style={{paddingLeft: 26 + (depth + 1) * 14}}>
                <a className="tree-row" href={href(workspace, 'files', partsOf(entry.path))} aria-current={current === entry.path ? 'page' : undefined}><Icon name={entry.kind === 'projection' ? 'chat' : 'file'} size={16} /><span className="grow">{entry.name}</span></a>
              </li>
            ))}
        </ul>
      )}
    </li>
  );
}

function At({workspace, path, view}: {workspace: string; path: string; view: string}) {
  const info = useInfo(workspace, path, path !== '/');
  if (view === 'rewind' && (path === '/' || info.data?.kind === 'folder')) return <RewindView workspace={workspace} path={path} />;
  if (path === '/') return <FolderView workspace={workspace} path="/" />;
  if (info.isPending) return <Loading what={path} />;
  if (isGone(info.error)) {
    return (
      <Empty icon="file" title="There is nothing at this path">
        <p>{path} was moved or removed, or you may not see it.</p>
        <a className="button" href={href(workspace, 'files', [], {view: 'trash'})}>Look into the trash</a>
      </Empty>
    );
  }
  const failure = info.isError && <Failure error={info.error} retry={() => void info.refetch()} />;
  if (!info.data) return <div className="page">{failure}</div>;
  // A file that could not be read once more stays, with the words that are typed into it.
  return <>
    {failure}
    {info.data.kind === 'folder' ? <FolderView workspace={workspace} path={path} info={info.data} /> : <FileView workspace={workspace} info={info.data} view={view} />}
  </>;
}

export function Crumbs({workspace, path}: {workspace: string; path: string}) {
  const parts = partsOf(path);
  return (
    <nav className="crumbs" aria-label="Path">
      <a href={href(workspace, 'files')}>Files</a>
      {parts.map((part, at) => (
        <span key={at}><span aria-hidden="true"> / </span>{at === parts.length - 1 ? <h1>{part}</h1> : <a href={href(workspace, 'files', parts.slice(0, at + 1))}>{part}</a>}</span>
      ))}
      {parts.length === 0 && <h1 className="visually-hidden">Files</h1>}
    </nav>
  );
}
