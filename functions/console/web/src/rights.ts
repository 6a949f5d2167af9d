import {useQuery} from '@tanstack/react-query';
import {hub, type Schemas} from './hub.ts';

/** The rights of the caller in a workspace. While they are not known everything is offered: the hub decides in any case. `isAsked` until it has answered, or failed to. */
export function useRights(workspace: string): {may: (action: Schemas['Action']) => boolean; isKnown: boolean; isAsked: boolean; role: string | undefined; user: string | undefined} {
  const {data, isPending} = useQuery({
    queryKey: [workspace, 'me'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/members/me', {path: {workspace_id: workspace}, signal}),
    staleTime: 300_000,
  });
  return {may: action => data === undefined || data.may.includes(action), isKnown: data !== undefined, isAsked: isPending, role: data?.role, user: data?.user_id};
}
