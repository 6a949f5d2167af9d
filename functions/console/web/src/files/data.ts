/** Files as the page reads and writes them. Every query is below `[workspace, 'files']`, which a change of any file makes stale. */
import {useQuery} from '@tanstack/react-query';
import {hub, type Schemas} from '../hub.ts';

export type Info = Schemas['FileInfo'];

/** The most entries of a folder that are listed. */
export const MOST_ENTRIES = 2000;
/** The longest text that is opened in the editor, in bytes. */
export const MOST_TEXT = 2 * 1024 * 1024;

export function useInfo(workspace: string, path: string, enabled = true) {
  return useQuery({
    queryKey: [workspace, 'files', 'info', path],
    enabled,
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path: {workspace_id: workspace}, query: {path}, signal}),
  });
}

export function useFolder(workspace: string, path: string, enabled = true) {
  return useQuery({
    queryKey: [workspace, 'files', 'folder', path],
    enabled,
    queryFn: async ({signal}) => {
      const entries: Info[] = [];
      const listed = hub.all('/api/v1/workspaces/{workspace_id}/files', {path: {workspace_id: workspace}, query: {path, limit: 200}, signal});
      for await (const entry of listed) {
        entries.push(entry);
        // A folder with more is searched, not scrolled.
        if (entries.length >= MOST_ENTRIES) break;
      }
      return entries.sort((one, other) => Number(other.kind === 'folder') - Number(one.kind === 'folder') || one.name.localeCompare(other.name));
    },
  });
}

export type Content = {kind: 'text'; text: string} | {kind: 'image'; blob: Blob} | {kind: 'other'};
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp)$/i;
const IMAGE_TYPES: Record<string, string> = {png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', avif: 'image/avif', bmp: 'image/bmp'};

/** The content of a version. It never changes, so it is kept. */
export function useContent(workspace: string, file: Pick<Info, 'file_id' | 'name' | 'size'> | undefined, v: number, enabled = true) {
  return useQuery({
    queryKey: [workspace, 'content', file?.file_id, v],
    enabled: enabled && file !== undefined && v > 0,
    staleTime: Infinity,
    queryFn: async ({signal}): Promise<Content> => {
      const {file_id, name, size} = file!;
      const isImage = IMAGE.test(name);
      if (size > (isImage ? 16 * MOST_TEXT : MOST_TEXT)) return {kind: 'other'};
      const answer = await hub.read('/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content', {path: {workspace_id: workspace, file_id, v}, signal});
      const content = await answer.arrayBuffer();
      if (isImage) {
        const type = IMAGE_TYPES[name.split('.').at(-1)!.toLowerCase()] ?? 'image/png';
        return {kind: 'image', blob: new Blob([content], {type})};
      }
      try {
        const text = new TextDecoder('utf-8', {fatal: true}).decode(content);
        return text.includes('\0') ? {kind: 'other'} : {kind: 'text', text};
      } catch {
        return {kind: 'other'};
      }
    },
  });
}

export async function download(workspace: string, file: Info): Promise<void> {
  const answer = await hub.read('/api/v1/workspaces/{workspace_id}/files/{file_id}/content', {path: {workspace_id: workspace, file_id: file.file_id}});
  const url = URL.createObjectURL(new Blob([await answer.arrayBuffer()], {type: 'application/octet-stream'}));
  const link = Object.assign(document.createElement('a'), {href: url, download: file.name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
