// An editor: drives `buildscale acp` with the protocol's own client library, which checks each message by its schema.
// Arguments: the folder of the library's package, the program, the hub's address, the working directory, the program and the script of a tool server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { Readable, Writable } from 'node:stream';

const [library, program, url, cwd, node, everything] = process.argv.slice(2);
const acp = await import(`${library}/dist/acp.js`);
const schema = await import(`${library}/dist/schema/zod.gen.js`);

/** Starts the agent; `decide` answers its requests by their parameters. */
const start = (decide) => {
  const child = spawn(program, ['acp', '--url', url], { stdio: ['pipe', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (bytes) => { log += bytes; });
  const updates = [], heard = [];
  const tell = () => heard.splice(0).forEach((wake) => wake());
  const read = [], terminals = new Map();
  const client = {
    readTextFile: async (params) => {
      schema.zReadTextFileRequest.parse(params);
      read.push(params.path);
      return { content: 'not saved yet\n' };
    },
    writeTextFile: async (params) => {
      schema.zWriteTextFileRequest.parse(params);
      writeFileSync(params.path, params.content);
      return {};
    },
    createTerminal: async (params) => {
      schema.zCreateTerminalRequest.parse(params);
      const terminalId = `terminal ${terminals.size}`;
      const terminal = { output: '' };
      const ran = spawn(params.command, params.args, { cwd: params.cwd, detached: true });
      terminal.kill = () => { try { process.kill(-ran.pid); } catch { /* It has ended. */ } };
      ran.stdout.on('data', (bytes) => { terminal.output += bytes; });
      terminal.ended = new Promise((resolve) => ran.on('close', (exitCode, signal) => resolve({ exitCode, signal })));
      terminals.set(terminalId, terminal);
      return { terminalId };
    },
    waitForTerminalExit: async (params) => {
      schema.zWaitForTerminalExitRequest.parse(params);
      return terminals.get(params.terminalId).ended;
    },
    terminalOutput: async (params) => {
      schema.zTerminalOutputRequest.parse(params);
      const { output, ended } = terminals.get(params.terminalId);
      return { output, truncated: false, exitStatus: await ended };
    },
    releaseTerminal: async (params) => {
      schema.zReleaseTerminalRequest.parse(params);
      terminals.get(params.terminalId).kill();
      terminals.delete(params.terminalId);
      tell();
      return {};
    },
    sessionUpdate: async (params) => {
      schema.zSessionNotification.parse(params);
      updates.push(params.update);
      tell();
    },
    requestPermission: async (params) => {
      schema.zRequestPermissionRequest.parse(params);
      const optionId = await decide(params);
      return { outcome: optionId === null ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
    },
  };
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const agent = new acp.ClientSideConnection(() => client, stream);
  const until = async (fits) => {
    while (!updates.some(fits)) await new Promise((wake) => heard.push(wake));
  };
  const said = (kind = 'agent_message_chunk') =>
    updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join('');
  return { child, agent, updates, read, terminals, until, said, log: () => log };
};
/** A port below those that the system gives to processes that ask for any, so that none of them takes it in between. */
const freePort = async () => {
  for (let tried = 0; ; tried++) {
    const port = 20_000 + ((process.pid % 1_000) * 10 + tried) % 10_000;
    const server = createServer();
    const isFree = await new Promise((told) => {
      server.once('error', () => told(false));
      server.listen(port, '127.0.0.1', () => told(true));
    });
    if (isFree) {
      await new Promise((wake) => server.close(wake));
      return port;
    }
  }
};
const hello = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true } };
const text = (words) => [{ type: 'text', text: words }];
const ofKind = (kind) => (option) => option.kind === kind;

let choose = () => null;
const first = start((params) => choose(params));
const greeted = await first.agent.initialize(hello);
assert.equal(greeted.agentCapabilities.loadSession, true);
await assert.rejects(first.agent.newSession({ cwd: '/', mcpServers: [] }), /outside of the allowed roots/);
// Tool servers of the editor: one that works, and one that cannot be started.
const server = { name: 'every thing', command: node, args: [everything, 'stdio'], env: [{ name: 'HERE', value: 'there' }] };
const broken = { name: 'broken', command: `${cwd}/nothing`, args: [], env: [] };
assert.deepEqual(greeted.agentCapabilities.mcpCapabilities, { http: true, sse: false });
const sse = { type: 'sse', name: 'old', url: 'http://127.0.0.1:1/', headers: [] };
await assert.rejects(first.agent.newSession({ cwd, mcpServers: [sse] }), ({ code }) => code === -32602);
const made = await first.agent.newSession({ cwd, mcpServers: [server, broken] });
assert.match(first.log(), /the tool server broken: .*nothing does not start/);
const { sessionId } = made;
assert.deepEqual(made.modes.availableModes.map((mode) => mode.id), ['chat', 'plan']);
assert.ok(made.configOptions.some((option) => option.id === 'model'));

// A turn: reasoning, words, calls with places and differences.
assert.deepEqual(await first.agent.prompt({ sessionId, prompt: text('novel') }), { stopReason: 'end_turn' });
assert.match(first.said(), /The file of novel is done\.$/);
assert.match(first.said('agent_thought_chunk'), /I think about it\./);
const calls = first.updates.filter((update) => update.sessionUpdate === 'tool_call');
assert.deepEqual(calls.map((call) => call.kind), ['edit', 'read', 'read', 'edit']);
assert.deepEqual(calls[0].locations, [{ path: '/projects/novel/a.md' }]);
assert.deepEqual(calls[3].content, [{ type: 'diff', path: '/projects/novel/a.md', oldText: 'first', newText: 'second' }]);
const ended = first.updates.filter((update) => update.sessionUpdate === 'tool_call_update');
assert.deepEqual(ended.map((update) => update.status), Array(4).fill('completed'));

// A permission that is refused, a question, and a turn that is cancelled.
choose = ({ toolCall, options }) => {
  assert.equal(toolCall.kind, 'edit');
  assert.equal(toolCall.content[0].path, '/system/agents/poet/persona.md');
  return options.find(ofKind('reject_once')).optionId;
};
await first.agent.prompt({ sessionId, prompt: text('become a poet') });
assert.match(first.said(), /Then I stay as I am\.$/);
choose = ({ options }) => options.find((option) => option.name === 'blue').optionId;
assert.equal((await first.agent.prompt({ sessionId, prompt: text('ask') })).stopReason, 'end_turn');
assert.match(first.said(), /blue/);
const before = first.said().length;
const slow = first.agent.prompt({ sessionId, prompt: text('slow') });
await first.until(() => first.said().length > before);
await first.agent.cancel({ sessionId });
assert.equal((await slow).stopReason, 'cancelled');

// A linked file is read as the editor has it, saved or not.
const link = { type: 'resource_link', name: 'draft.md', uri: `file://${cwd}/draft.md` };
await first.agent.prompt({ sessionId, prompt: [...text('novel '), link] });
assert.deepEqual(first.read, [`${cwd}/draft.md`]);
const thread = await (await fetch(`${url}/v1/threads/${sessionId}/history`, { headers: { 'x-client-id': 'editor' } })).json();
assert.match(thread.turns.at(-1).requestText, /<file uri="file:.*draft\.md">\nnot saved yet\n<\/file>$/);

// A picture comes along, and is a file of the workspace.
const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const asJson = async (path) => (await fetch(`${url}${path}`, { headers: { 'x-client-id': 'editor' } })).json();
await first.agent.prompt({ sessionId, prompt: [...text('novel '), { type: 'image', mimeType: 'image/png', data: picture }] });
const { turns } = await asJson(`/v1/threads/${sessionId}/history`);
assert.equal(turns.at(-1).requestText, 'novel [@file.png]');
const { workspaces } = await asJson('/api/v1/workspaces');
const within = (path) => asJson(`/api/v1/workspaces/${workspaces[0].workspace_id}/files?path=${path}`);
const [folder] = (await within(`/data/attachments/${sessionId}`)).entries;
const [kept] = (await within(folder.path)).entries;
assert.match(kept.path, /\/file\.png$/);
const bytes = await (await fetch(`${url}/attachments/${kept.file_id}`)).arrayBuffer();
assert.equal(Buffer.from(bytes).toString('base64'), picture);

// A persona works on the project by the editor's own methods. It reads unasked; before it writes or runs something a person is asked.
const permitted = [];
choose = ({ toolCall, options }) => {
  permitted.push([toolCall.kind, options.map(({ kind }) => kind)]);
  return options.find(ofKind('allow_once')).optionId;
};
await first.agent.prompt({ sessionId, prompt: text('mend the project') });
assert.equal(first.read.at(-1), `${cwd}/a.txt`);
assert.equal(readFileSync(`${cwd}/a.txt`, 'utf8'), 'mended');
assert.match(first.said(), /It was not saved yet\n, and the command says mended\n\(exit code 3\)\.$/);
assert.deepEqual(permitted, [['edit', ['allow_once', 'allow_always', 'reject_once', 'reject_always']], ['execute', ['allow_once', 'reject_once']]]);
const shown = first.updates.flatMap((update) => update.content ?? []).filter(({ type }) => type === 'terminal');
assert.deepEqual([shown.length, first.terminals.size], [1, 0]);
choose = ({ options }) => options.find(ofKind('reject_once')).optionId;
writeFileSync(`${cwd}/a.txt`, 'mine');
await first.agent.prompt({ sessionId, prompt: text('mend the project') });
assert.equal(readFileSync(`${cwd}/a.txt`, 'utf8'), 'mine');

// A tool of the editor's server: a person is asked, and may allow it for good.
const asks = [];
const allow = ({ toolCall, options }) => {
  asks.push([toolCall.kind, options.map(({ kind }) => kind)]);
  return options.find(ofKind('allow_always')).optionId;
};
choose = ({ options }) => options.find(ofKind('reject_once')).optionId;
await first.agent.prompt({ sessionId, prompt: text('echo in the project') });
assert.match(first.said(), /The server failed: .*declined[^]*$/);
choose = allow;
for (const _ of [1, 2]) await first.agent.prompt({ sessionId, prompt: text('echo in the project') });
assert.match(first.said(), /(The server said Echo: over there\.\s*){2}$/);
assert.deepEqual(asks, [['other', ['allow_once', 'allow_always', 'reject_once', 'reject_always']]]);

// The same server over HTTP, in a session of its own.
const port = await freePort();
const far = spawn(node, [everything, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
// Also where the story breaks off.
process.on('exit', () => far.kill());
let farSaid = '';
await new Promise((wake) => far.stderr.on('data', (bytes) => { farSaid += bytes; if (farSaid.includes('listening')) wake(); }));
const http = { type: 'http', name: 'every thing', url: `http://127.0.0.1:${port}/mcp`, headers: [] };
const other = await first.agent.newSession({ cwd, mcpServers: [http] });
choose = ({ options }) => options.find(ofKind('allow_once')).optionId;
await first.agent.prompt({ sessionId: other.sessionId, prompt: text('echo in the project') });
assert.match(first.said(), /(The server said Echo: over there\.\s*){3}$/);
far.kill();

// A turn that is cancelled takes its command along.
choose = ({ options }) => options.find(ofKind('allow_once')).optionId;
const waiting = first.agent.prompt({ sessionId, prompt: text('wait in the project') });
await first.until(() => first.terminals.size === 1);
await first.agent.cancel({ sessionId });
assert.equal((await waiting).stopReason, 'cancelled');
await first.until(() => first.terminals.size === 0);

// Modes, options, lists, and refusals.
await first.agent.setSessionMode({ sessionId, modeId: 'plan' });
const chosen = await first.agent.setSessionConfigOption({ sessionId, configId: 'mode', value: 'chat' });
assert.equal(chosen.configOptions.find((option) => option.id === 'mode').currentValue, 'chat');
await assert.rejects(first.agent.setSessionMode({ sessionId, modeId: 'wild' }));
await assert.rejects(first.agent.loadSession({ sessionId: '019bf537-f228-7cd3-aa1c-3da8af302e12', cwd, mcpServers: [] }));
const { sessions } = await first.agent.listSessions({ cwd });
assert.deepEqual(sessions.map((session) => session.sessionId).sort(), [sessionId, other.sessionId].sort());

// The editor dies while a permission is open. The session is loaded, and asks again.
let asked;
const isAsked = new Promise((resolve) => { asked = resolve; });
choose = () => { asked(); return new Promise(() => {}); };
first.agent.prompt({ sessionId, prompt: text('become a poet') }).catch(() => {});
await isAsked;
first.child.kill('SIGKILL');

const second = start(({ options }) => options.find(ofKind('allow_once')).optionId);
await second.agent.initialize(hello);
await second.agent.loadSession({ sessionId, cwd, mcpServers: [server] });
assert.match(second.said('user_message_chunk'), /^novel.*become a poet.*ask.*slow.*not saved yet.*mend the project.*echo in the project.*wait in the project.*become a poet$/s);
await second.until(() => second.said().endsWith('I have become a poet.'));
assert.match(second.said(), /The file of novel is done\..*Then I stay as I am\./s);
// An editor hears no end of a turn that it has not begun itself.
for (let isOver = false; !isOver;) {
  isOver = await second.agent.prompt({ sessionId, prompt: text('echo in the project') }).then(() => true, ({ data }) => {
    assert.equal(data.code, 'CONFLICT');
    return new Promise((wake) => setTimeout(wake, 20, false));
  });
}
assert.match(second.said(), /The server said Echo: over there\.$/);
second.child.stdin.end();
await new Promise((resolve) => second.child.on('exit', resolve));
assert.equal(second.child.exitCode, 0);
console.log('ok');
