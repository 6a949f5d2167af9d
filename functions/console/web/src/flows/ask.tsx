/** The questions of a node, as a form. */
import {useMutation} from '@tanstack/react-query';
import {useState} from 'react';
import {SchemaField, textOf, valueOf, type JsonSchema, type Typed} from '../form.tsx';
import {hub} from '../hub.ts';
import {useFields} from '../store.ts';
import {Badge, Button, Failure} from '../ui.tsx';
import type {Ask} from './fold.ts';

export function AskForm({workspace, task, ask, mayAnswer}: {workspace: string; task: string; ask: Ask; mayAnswer: boolean}) {
  const [typed, change, clear] = useFields<Typed>(`${task}/${ask.node}`, {});
  const [fault, setFault] = useState<string>();
  const answering = useMutation({
    mutationFn: (answers: Record<string, unknown>) => hub.post('/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}', {
      path: {workspace_id: workspace, task_id: task, node: ask.node}, body: {answers},
    }),
    onSuccess: clear,
  });
  if (!mayAnswer) {
    return (
      <section className="card ask" aria-label={`${ask.node} asks`}>
        <div className="card-head"><strong>{ask.node} asks</strong><Badge tone="ask">waits</Badge></div>
        {ask.questions.map(one => <p key={one.name}>{one.question}</p>)}
        <p className="field-hint">You can see this question. Answering it needs the right to run.</p>
      </section>
    );
  }
  const submit = (values: Typed) => {
    try {
      setFault(undefined);
      answering.mutate(Object.fromEntries(ask.questions.map(one => {
        const schema = (one.schema ?? {}) as JsonSchema;
        return [one.name, valueOf(one.question, schema, values[one.name] ?? '', schema.default === undefined)];
      }).filter(([, value]) => value !== undefined)));
    } catch (error) {
      setFault((error as Error).message);
    }
  };
  return (
    <form className="card ask" noValidate aria-label={`${ask.node} asks`} onSubmit={event => { event.preventDefault(); submit(typed); }}>
      <div className="card-head"><strong>{ask.node} asks you</strong><Badge tone="ask">waits</Badge></div>
      {ask.questions.map(one => {
        const schema = (one.schema ?? {}) as JsonSchema;
        const set = (text: string) => change({[one.name]: text});
        const buttons = ((one.buttons ?? []) as unknown[]).map(choice => textOf(schema, choice));
        const choices = buttons.length > 0 && <div className="choices">{buttons.map(text => <Button key={text} aria-pressed={typed[one.name] === text} disabled={answering.isPending} onClick={() => ask.questions.length === 1 ? submit({[one.name]: text}) : set(text)}>{text}</Button>)}</div>;
        return <SchemaField key={one.name} name={one.name} label={one.question} schema={schema} required value={typed[one.name] ?? ''} onChange={set} after={choices} />;
      })}
      {fault && <p className="fault" role="alert">{fault}</p>}
      {answering.isError && <Failure error={answering.error} />}
      <div className="card-foot"><Button look="primary" type="submit" disabled={answering.isPending}>Answer</Button></div>
    </form>
  );
}
