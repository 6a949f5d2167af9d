import {useQuery} from '@tanstack/react-query';
import {hub} from './hub.ts';
import {useRights} from './rights.ts';

/** The one person of a machine without accounts. */
const MACHINE = '00000000-0000-0000-0000-000000000000';

/** The name of an author for people: a member's own name where it is known, the agent, or the system. */
export function useAuthors(workspace: string): (author: string) => string {
  const {may, isKnown} = useRights(workspace);
  const {data} = useQuery({
    queryKey: [workspace, 'members'],
    enabled: isKnown && may('read'),
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/members', {path: {workspace_id: workspace}, query: {limit: 200}, signal}),
    staleTime: 300_000,
  });
  return author => {
    const [kind, id = ''] = author.split(/:(.*)/);
    if (kind !== 'user') return kind === 'agent' ? id : author;
    return id === MACHINE ? 'operator' : data?.members.find(member => member.user_id === id)?.subject ?? id.slice(0, 8);
  };
}
