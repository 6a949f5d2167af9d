import {useQuery} from '@tanstack/react-query';
import {hub} from '../hub.ts';

export function useModels() {
  return useQuery({queryKey: ['models'], queryFn: ({signal}) => hub.get('/api/v1/models', {signal}), staleTime: 300_000});
}

export function ModelPicker({value, onChange}: {value: string | null | undefined; onChange: (model: string) => void}) {
  const {data} = useModels();
  const models = (data?.models ?? []).filter(model => model.available);
  const usual = models.find(model => model.default);
  const shown = value ?? usual?.id ?? '';
  return (
    <select className="picker" aria-label="Model" value={shown} onChange={event => onChange(event.target.value)}>
      {shown !== '' && !models.some(model => model.id === shown) && <option value={shown}>{shown}</option>}
      {models.map(model => <option key={model.id} value={model.id}>{model.id.split('/').slice(1).join('/')}</option>)}
    </select>
  );
}

export function PersonaPicker({workspace, value, onChange}: {workspace: string; value: string; onChange: (persona: string) => void}) {
  const {data} = useQuery({
    queryKey: [workspace, 'personas'],
    queryFn: ({signal}) => hub.get('/api/v1/workspaces/{workspace_id}/agents', {path: {workspace_id: workspace}, signal}),
  });
  const agents = data?.agents ?? [];
  return (
    <select className="picker" aria-label="Persona" value={value} onChange={event => onChange(event.target.value)} title={agents.find(agent => agent.name === value)?.description ?? undefined}>
      {!agents.some(agent => agent.name === value) && <option value={value}>{value}</option>}
      {agents.map(agent => <option key={agent.name} value={agent.name}>{agent.name}</option>)}
    </select>
  );
}

const MODES = [['chat', 'Chat'], ['plan', 'Plan first']] as const;
export function ModePicker({value, onChange}: {value: string; onChange: (mode: 'chat' | 'plan') => void}) {
  return (
    <select className="picker" aria-label="Mode" value={value} onChange={event => onChange(event.target.value as 'chat' | 'plan')}>
      {MODES.map(([mode, name]) => <option key={mode} value={mode}>{name}</option>)}
      {value === 'build' && <option value="build">Build the plan</option>}
    </select>
  );
}
