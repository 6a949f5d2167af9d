import {hub} from './hub.ts';
import {usePages} from './paged.ts';

/** The chats of a workspace, the latest first. */
export function useChats(workspace: string) {
  return usePages({
    queryKey: [workspace, 'chats'],
    read: (cursor, signal) => hub.get('/api/v1/workspaces/{workspace_id}/chats', {path: {workspace_id: workspace}, query: {limit: 50, ...cursor}, signal}),
    itemsOf: page => page.chats,
  });
}
