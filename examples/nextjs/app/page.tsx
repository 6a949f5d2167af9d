'use client';

import {useChat} from '@ai-sdk/react';
import {
  DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls, type UIMessage,
} from 'ai';
import {useEffect, useState} from 'react';
import {Call, type Calls} from './call';

const transport = new DefaultChatTransport({api: '/api/hub/ai-sdk/chat'});

/** The chat of this browser. Its id is kept, so a reload shows the turn that runs, and goes on with it. */
export default function Page() {
  const [id, setId] = useState<string>();
  useEffect(() => {
    const kept = localStorage.getItem('chat') ?? crypto.randomUUID();
    localStorage.setItem('chat', kept);
    setId(kept);
  }, []);
  return id === undefined ? null : <Chat id={id} />;
}

function Chat({id}: {id: string}) {
  const [words, setWords] = useState('');
  const {messages, status, error, sendMessage, stop, addToolApprovalResponse, addToolOutput} = useChat({
    id, transport, messages: remembered(id), resume: true,
    // The turn goes on by itself when a person has approved or answered all that it waits for.
    sendAutomaticallyWhen: told => lastAssistantMessageIsCompleteWithApprovalResponses(told) || lastAssistantMessageIsCompleteWithToolCalls(told),
  });
  useEffect(() => {
    // Only what the person said is kept here: the hub has the answers.
    localStorage.setItem(`said ${id}`, JSON.stringify(messages));
  }, [id, messages]);
  const calls: Calls = {
    approve: (approval, approved) => void addToolApprovalResponse({id: approval, approved}),
    answer: (tool, toolCallId, output) => void addToolOutput({tool, toolCallId, output}),
  };
  const isBusy = status === 'submitted' || status === 'streaming';
  return <main>
    <h1>A chat with a hub</h1>
    {messages.map(message => <article key={message.id} className={message.role}>
      {message.parts.map((part, at) => <Part key={at} part={part} calls={calls} />)}
    </article>)}
    <p role="status">{error ? `This did not work: ${error.message}` : isBusy ? 'The agent works…' : ''}</p>
    <form className="send" onSubmit={event => {
      event.preventDefault();
      if (words.trim() === '') return;
      void sendMessage({text: words});
      setWords('');
    }}>
      <input aria-label="Message" value={words} onChange={event => setWords(event.target.value)} />
      {isBusy
        ? <button type="button" onClick={() => { void fetch(`/api/hub/ai-sdk/chat/${id}/stop`, {method: 'POST'}); void stop(); }}>Stop</button>
        : <button>Send</button>}
    </form>
  </main>;
}

function Part({part, calls}: {part: UIMessage['parts'][number]; calls: Calls}) {
  switch (part.type) {
    case 'text': return <div>{part.text}</div>;
    case 'reasoning': return <details><summary>Thought</summary>{part.text}</details>;
    case 'dynamic-tool': return <Call part={part} calls={calls} />;
    case 'data-file': return <small>{`Wrote ${(part.data as {path: string}).path}`}</small>;
    default: return null;
  }
}

function remembered(id: string): UIMessage[] {
  return JSON.parse(localStorage.getItem(`said ${id}`) ?? '[]') as UIMessage[];
}
