/** Another chat that begins with the history of this one. Nothing of this one changes. */
import {useMutation, useQueryClient} from '@tanstack/react-query';
import {hub, told} from '../hub.ts';
import {useOnce} from '../once.ts';
import {go, href} from '../router.ts';
import {remember} from '../store.ts';
import {Button} from '../ui.tsx';

export function Fork({workspace, chat, at, draft, label, title}: {
  workspace: string; chat: string; at: {at_seq: number} | {at_turn: string}; draft?: string; label: string; title: string;
}) {
  const client = useQueryClient();
  const once = useOnce();
  const forking = useMutation({
    mutationFn: () => once(at, idempotencyKey => hub.post('/api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork', {path: {workspace_id: workspace, chat_id: chat}, body: at, idempotencyKey})),
    onSuccess: made => {
      if (draft !== undefined) remember(`draft.${workspace}/${made.chat_id}`, draft);
      void client.invalidateQueries({queryKey: [workspace, 'chats']});
      go(href(workspace, 'chats', [made.chat_id]));
    },
  });
  return (
    <span className="row-actions">
      {forking.isError && <span className="fault" role="alert">{told(forking.error).title}</span>}
      <Button look="quiet" className="small" title={title} onClick={() => forking.mutate()} disabled={forking.isPending}>{label}</Button>
    </span>
  );
}
