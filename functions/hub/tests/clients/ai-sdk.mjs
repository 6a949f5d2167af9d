// The chat of the AI SDK, as `useChat` has it: parts, approval, a question, leaving and coming back, refusals.
import { Chat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';
import { base, dot, finish, kept, until, workspace } from './common.mjs';

const api = `${base}/api/v1/workspaces/${workspace}/ai-sdk/chat`;
const open = (more) => new Chat({ transport: new DefaultChatTransport({ api }), ...more });
const parts = (chat, type) => chat.lastMessage.parts.filter((part) => part.type === type);
const words = (chat) => parts(chat, 'text').map((part) => part.text);
const ready = (chat, fits) => until(() => chat.status === 'ready' && fits());
const out = {};

const whole = open();
await whole.sendMessage({ text: 'whole' });
out.whole = {
  status: whole.status,
  texts: words(whole),
  reasoning: parts(whole, 'reasoning').map((part) => part.text),
  tools: parts(whole, 'dynamic-tool').map((part) => `${part.toolName} ${part.state}`),
  outputs: parts(whole, 'dynamic-tool').map((part) => part.output.replace(/[0-9a-f]{64}/, 'HASH').split('\n')[0]),
  file: parts(whole, 'data-file')[0].data.path,
  usage: parts(whole, 'data-usage').length,
};
await whole.sendMessage({ text: 'say it' });
out.again = [whole.messages.length, words(whole)];

// All changes of a plan are one part, which has the last state of it.
const planned = open();
await planned.sendMessage({ text: 'arrange the week' });
out.plan = parts(planned, 'data-plan').map(({ data: { path, ...plan } }) => [plan, path.startsWith('/chats/')]);

const broken = open();
await broken.sendMessage({ text: 'break' });
out.broken = [broken.status, broken.error.message];

// A picture comes along. The client sends it again with each message of the chat.
const shown = open();
const files = [{ type: 'file', mediaType: 'image/png', filename: 'dot of ai.png', url: dot }];
await shown.sendMessage({ text: 'say it', files });
await shown.sendMessage({ text: 'say it' });
out.shown = [shown.status, shown.messages.length, words(shown), await kept('dot of ai.png')];

const wish = open({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
await wish.sendMessage({ text: 'become a poet' });
const [asks] = parts(wish, 'dynamic-tool');
out.asks = [asks.state, asks.toolName, asks.input.path];
wish.addToolApprovalResponse({ id: asks.approval.id, approved: true });
await ready(wish, () => words(wish).length > 1);
out.approved = [words(wish), parts(wish, 'dynamic-tool').map((part) => part.state), wish.messages.length];

const no = open({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
await no.sendMessage({ text: 'become a poet' });
const [waits] = parts(no, 'dynamic-tool');
no.addToolApprovalResponse({ id: waits.approval.id, approved: false, reason: 'no poets' });
await ready(no, () => words(no).length > 1);
const [declined] = parts(no, 'dynamic-tool');
out.declined = [waits.callProviderMetadata, declined.state, declined.errorText, declined.approval.reason, words(no)];

const question = open({ sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
await question.sendMessage({ text: 'ask me' });
const [open_] = parts(question, 'dynamic-tool');
question.addToolOutput({ tool: open_.toolName, toolCallId: open_.toolCallId, output: { colour: 'red' } });
await ready(question, () => words(question).length > 1);
out.answered = [open_.input.questions[0].name, words(question)];

// The page is left in the middle of a sentence, and opened again with the messages of before.
const left = open();
const leaving = left.sendMessage({ text: 'slow' });
await until(() => left.messages.length > 1 && words(left).join('').length > 3);
const [mine] = left.messages;
await left.stop();
await leaving;
const back = open({ id: left.id, messages: [mine] });
const coming = back.resumeStream();
const all = 'one two three four five six seven eight nine ten';
await until(() => back.messages.length > 1 && words(back).join('').trim() === all);
await fetch(`${api}/${left.id}/stop`, { method: 'POST' });
await coming;
out.back = [back.status, words(back).map((text) => text.trim()), back.messages.length];
await back.resumeStream();
out.nothing = back.messages.length;

const refused = open();
await refused.sendMessage({ text: 'see', files: [{ type: 'file', mediaType: 'image/png', url: 'https://example.org/a.png' }] });
out.refused = JSON.parse(refused.error.message).error.code;
finish(out);
