import type {DynamicToolUIPart} from 'ai';

/** What a person says to calls that wait. */
export interface Calls {
  approve(approval: string, approved: boolean): void;
  answer(tool: string, call: string, output: Record<string, unknown>): void;
}

interface Question {
  name: string;
  question: string;
}

/** A call of a tool: its state, its arguments, and the form or the buttons that it waits for. */
export function Call({part, calls}: {part: DynamicToolUIPart; calls: Calls}) {
  if (part.state === 'approval-requested') {
    return <fieldset>
      <legend>{`May it call ${part.toolName}?`}</legend>
      <pre>{JSON.stringify(part.input, null, 2)}</pre>
      <button type="button" onClick={() => calls.approve(part.approval.id, true)}>Allow</button>{' '}
      <button type="button" onClick={() => calls.approve(part.approval.id, false)}>Refuse</button>
    </fieldset>;
  }
  if (part.toolName === 'ask_user' && part.state === 'input-available') {
    const {questions} = part.input as {questions: Question[]};
    return <form onSubmit={event => {
      event.preventDefault();
      calls.answer(part.toolName, part.toolCallId, Object.fromEntries(new FormData(event.currentTarget)));
    }}>
      {questions.map(({name, question}) => <p key={name}><label>{question} <input name={name} required /></label></p>)}
      <button>Answer</button>
    </form>;
  }
  return <details>
    <summary>{`${part.toolName} ${part.state === 'output-available' ? '✓' : part.state === 'output-error' ? '✗' : '…'}`}</summary>
    <pre>{JSON.stringify(part.input, null, 2)}</pre>
    <pre>{part.state === 'output-error' ? part.errorText : part.state === 'output-available' ? text(part.output) : ''}</pre>
  </details>;
}

function text(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output, null, 2);
}
