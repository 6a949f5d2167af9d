/** Documents: how far their conversion is, and their Markdown. */
import {useQuery} from '@tanstack/react-query';
import {hub, type Schemas} from '../hub.ts';
import {Markdown} from '../markdown.tsx';
import {Badge, Empty, Failure, Loading} from '../ui.tsx';
import type {Info} from './data.ts';

type Conversion = Schemas['Conversion'];

/** Whether a file has Markdown that was made from its current version. */
export const isReadable = (info: Info): boolean => info.conversion?.status === 'done';

/** The state of a conversion; nothing for files that are read as they are. */
export function ConversionBadge({conversion}: {conversion: Conversion | null | undefined}) {
  switch (conversion?.status) {
    case 'queued': return <Badge tone="busy">waits to be read</Badge>;
    case 'running': return <Badge tone="busy">is being read</Badge>;
    case 'done': return <Badge tone="good">readable</Badge>;
    case 'failed': return <Badge tone="bad">not readable</Badge>;
    case 'skipped': return conversion.reason === 'text' ? null : <Badge>not a document</Badge>;
    default: return null;
  }
}

/** The Markdown of a document, as agents read it. */
export function DocumentView({workspace, info}: {workspace: string; info: Info}) {
  const markdown = useQuery({
    queryKey: [workspace, 'files', 'markdown', info.file_id, info.v],
    queryFn: async ({signal}) => (await hub.read('/api/v1/workspaces/{workspace_id}/files/{file_id}/content', {path: {workspace_id: workspace, file_id: info.file_id}, query: {as: 'markdown'}, signal})).text(),
  });
  if (markdown.isPending) return <Loading what="the document" />;
  const failure = markdown.isError && <Failure error={markdown.error} retry={() => void markdown.refetch()} />;
  if (markdown.data === undefined) return <div className="page">{failure}</div>;
  return (
    <div className="reader">
      {failure}
      <p className="notice">This is the Markdown that agents read. Download the file to see it as it is.</p>
      <Markdown text={markdown.data.replace(/^---\n[\s\S]*?\n---\n/, '')} workspace={workspace} />
    </div>
  );
}

/** In place of a content that is no text: what is known of the document. */
export function NoText({info, size}: {info: Info; size: string}) {
  const {conversion} = info;
  if (conversion?.status === 'queued' || conversion?.status === 'running') {
    return <Empty icon="clock" title="The document is being read"><p>Its Markdown is shown here when it is there.</p></Empty>;
  }
  if (conversion?.status === 'failed') {
    return (
      <Empty icon="warn" title="The document could not be read">
        <p>{conversion.message}</p>
        <p className="code">{conversion.reason}</p>
        <p>A new version is tried again.</p>
      </Empty>
    );
  }
  return <Empty icon="file" title="This file is not shown here"><p>It is no text, or too long for the editor ({size}). {conversion?.status === 'skipped' && conversion.message} Download it to open it.</p></Empty>;
}
