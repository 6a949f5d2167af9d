// The states of the pages, in both themes and three widths, against the pictures in looks/. BLESS=1 makes them anew. Parts that all pages are made of
// (an empty list, loading, an error, a missing right) have a picture on one page, and the last stories look for them on each.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {watchTask} from '../../../../clients/typescript/dist/index.js';
import {begin, PATIENCE} from './browser.mjs';
import {compared, contextFor, LOOKS, settle} from './looks.mjs';

let world, context, judge;
const made = {};
before(async () => {
  world = await begin();
  const {api, path} = world;
  const write = (to, content) => api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path, query: {path: to}, body: {content}});
  made.chat = await world.chat('Show me what you can do');
  made.question = await world.chat('Ask me something');
  made.permission = await world.chat('Run a command');
  await write('/projects/notes.md', '# Notes\n\nA list:\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst a = 1;\n```\n');
  await write('/projects/code.py', 'def one():\n    return 1\n');
  await write('/projects/code.py', 'def one():\n    return 2\n\n\ndef two():\n    return 2\n');
  await api.post('/api/v1/workspaces/{workspace_id}/schedules', {path, body: {name: 'Brief', action: {kind: 'chat', goal: 'Sum up the day'}, rrule: 'FREQ=DAILY', begins: '2090-01-01T08:00', time_zone: 'UTC'}});
  // Of a chat whose turn does not end, so that nothing is posted.
  const {webhook} = await api.post('/api/v1/workspaces/{workspace_id}/webhooks', {path, body: {name: 'Team channel', url: 'https://example.com/hooks', events: ['turn.ended', 'plan.submitted'], chat_id: made.question}});
  made.webhook = webhook.webhook_id;
  await write('/system/flows/short/workflow.yaml', "version: 1\ndescription: Says something.\nnodes:\n  - {id: begin, kind: deterministic, role: start, context: none, op: {expr: input}}\n  - {id: say, kind: deterministic, role: linear, context: none, op: {expr: \"{'said': 'hello'}\"}}\n  - {id: end, kind: deterministic, role: exit, context: none}\nedges:\n  - {from: begin, to: say}\n  - {from: say, to: end}\n");
  const {task_id: task} = await api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...path, flow: 'short'}, body: {input: {}}});
  for await (const event of watchTask(api, {workspace: world.workspace, task}, {after: 0})) void event;
  made.task = task;
  made.run = await api.get('/api/v1/workspaces/{workspace_id}/tasks/{task_id}', {path: {...path, task_id: task}});
  made.code = (await api.get('/api/v1/workspaces/{workspace_id}/files/by-path', {path, query: {path: '/projects/code.py'}})).file_id;
  await world.rests(made.chat);
  made.view = await api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', {path: {...path, chat_id: made.chat}, query: {before: Number.MAX_SAFE_INTEGER, limit: 200}});
  context = await contextFor(world.browser);
  context.setDefaultTimeout(PATIENCE);
  judge = await (await world.browser.newContext()).newPage();
});
after(() => world.end());

const json = (body, status = 200) => route => route.fulfill({status, contentType: 'application/json', body: JSON.stringify(body)});
const refusal = (status, code, message, hint) => json({error: {code, message, hint, request_id: 'req-1'}}, status);
const failed = refusal(500, 'INTERNAL', 'something failed on the server', 'try again later');
/** An answer that does not come. */
const never = () => {};
const AN_ID = '01890000-0000-7000-8000-000000000009';
const THEN = '2026-01-01T00:00:00Z';
const heading = name => page => page.getByRole('heading', {name, exact: true}).first().waitFor();
const log = page => page.getByRole('log', {name: 'Conversation'});
/** An answer that streams, held in the middle of a word. */
const streaming = chat => {
  const block = (id, event, data) => `id: 1\nevent: chat_event\ndata: ${JSON.stringify({chat_id: chat, id, event, data})}\n\n`;
  const [turn, message] = ['01890000-0000-7000-8000-000000000001', '01890000-0000-7000-8000-000000000002'];
  const body = [
    block(900001, 'turn_started', {turn_id: turn, attempt: 1}), block(900002, 'message', {message_id: turn, role: 'user', content: 'Explain it'}),
    block(900003, 'thought', {message_id: message, text: 'They want an explanation. I look at the files first.'}), block(900004, 'chunk', {message_id: message, text: 'It works like this:\n\n1. A program sends a goal.\n2. The agent ans'}),
  ].join('');
  return route => route.fulfill({contentType: 'text/event-stream', body});
};
const AT = '/api/v1/workspaces';

/** name: its place, what is there when it is whole, what happens before, and what is another thing on each run. */
const STATES = {
  'sign-in': {ready: heading('Sign in'), routes: {[`**${AT}?*`]: refusal(401, 'UNAUTHORIZED', 'no token')}},
  'sign-in-refused': {routes: {[`**${AT}?*`]: refusal(401, 'UNAUTHORIZED', 'no token')}, ready: async page => {
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', {name: 'Sign in'}).click();
    await page.getByRole('alert').getByText('does not accept this token').waitFor();
  }},
  workspaces: {at: () => '#/workspaces', ready: heading('Workspaces')},
  'workspaces-none': {at: () => '#/workspaces', routes: {[`**${AT}?*`]: json({workspaces: []})}, ready: heading('Make your first workspace')},
  'workspaces-error': {at: () => '#/workspaces', routes: {[`**${AT}?*`]: failed}, ready: page => page.getByRole('alert').getByText('INTERNAL').waitFor()},
  'chat-new': {place: 'chats', ready: heading('What should be done?')},
  'chat-done': {place: () => `chats/${made.chat}`, ready: page => log(page).getByText(/tokens read/).waitFor()},
  'chat-question': {place: () => `chats/${made.question}`, ready: page => page.getByRole('form', {name: 'The agent asks'}).waitFor()},
  'chat-permission': {place: () => `chats/${made.permission}`, ready: page => page.getByRole('button', {name: 'Allow once'}).waitFor()},
  'chat-streaming': {place: () => `chats/${made.chat}`, routes: () => ({'**/events*': streaming(made.chat)}), ready: page => log(page).getByText('The agent ans').waitFor()},
  'chat-gone': {place: 'chats/01890000-0000-7000-8000-000000000000', ready: heading('This chat is not there')},
  'chat-loading': {place: () => `chats/${made.chat}`, routes: () => ({[`**/chats/${made.chat}?*`]: never}), ready: page => page.getByText('Loading the chat').waitFor()},
  'chat-paused': {
    place: () => `chats/${made.chat}`,
    routes: () => ({[`**/chats/${made.chat}?*`]: json({...made.view, status: 'paused', paused_reason: 'the model did not answer for an hour', queued: [{turn_id: AN_ID, content: 'And a summary, please'}]})}),
    ready: page => page.getByRole('list', {name: 'Messages that wait'}).getByText('And a summary').waitFor(),
  },
  'chat-read-only': {place: () => `chats/${made.permission}`, routes: {'**/members/me': json({role: 'viewer', may: ['read']})}, ready: page => page.getByText('Writing in it needs the right to converse').waitFor()},
  files: {place: 'files/projects', ready: page => page.locator('.entries').getByText('notes.md').waitFor()},
  'files-empty': {place: 'files/projects', routes: {[`**${AT}/*/files?path=*`]: json({entries: []})}, ready: heading('This folder is empty')},
  'file-read': {place: 'files/projects/notes.md', ready: heading('Notes')},
  'file-edit': {place: 'files/projects/code.py', ready: page => page.locator('.cm-content').getByText('def two').waitFor()},
  'file-history': {place: 'files/projects/code.py?view=history', ready: page => page.getByRole('textbox', {name: /Differences of/}).getByText('def two').waitFor(), changing: ['.versions .faint']},
  'file-stale': {
    place: 'files/projects/code.py', kept: () => ({[`draft.file/${world.workspace}/${made.code}`]: JSON.stringify({v: 1, text: 'def one():\n    return 3\n'})}),
    ready: async page => { await page.getByRole('alert').getByText('There is a newer version 2').waitFor(); await page.locator('.cm-content').getByText('return 3').waitFor(); },
  },
  'files-tags': {place: 'files?view=tags', routes: {[`**${AT}/*/files/tags`]: json({tags: [{tag: 'draft', files: 12}, {tag: 'plan', files: 1}], truncated: true})}, ready: page => page.getByRole('link', {name: /^draft/}).waitFor()},
  'files-rewind': {
    place: 'files/projects?view=rewind', kept: () => ({[`draft.rewind/${world.workspace}/projects`]: '2026-01-01T12:00:05'}),
    routes: {[`**${AT}/*/rewind`]: json({
      state: 'preview', as_of: THEN, counts: {creates: 0, updates: 1, deletes: 1, moves: 0, marks: 0}, unavailable: [],
      steps: [
        {op: 'update', file_id: AN_ID, path: '/projects/notes.md', to_v: 1, diff: '@@ -1 +1 @@\n-# Notes\n+# First notes\n'},
        {op: 'delete', file_id: AN_ID, path: '/projects/a folder with a long name/a file with a very long name.md'},
      ],
      conflicts: [{file_id: AN_ID, path: '/projects/code.py', reason: 'somebody else has changed it since'}],
    })},
    ready: page => page.getByRole('button', {name: 'Take back 2 changes'}).waitFor(),
  },
  'trash-full': {place: 'files?view=trash', routes: {[`**${AT}/*/files/trash?*`]: json({files: [{at: THEN, info: {file_id: AN_ID, kind: 'file', path: '/projects/old.md'}}, {at: THEN, info: {file_id: `${AN_ID}-2`, kind: 'folder', path: '/projects/drafts'}}]})}, ready: page => page.getByText('/projects/old.md').waitFor()},
  trash: {place: 'files?view=trash', ready: heading('The trash is empty')},
  flows: {place: 'flows', ready: page => page.getByRole('link', {name: /plan_and_execute/}).waitFor(), changing: ['.page > h2 ~ *']},
  'flows-loading': {place: 'flows', routes: {[`**${AT}/*/flows`]: never}, ready: page => page.getByText('Loading the flows').waitFor(), changing: ['.page > h2 ~ *']},
  flow: {place: 'flows/short', ready: page => page.locator('.node').nth(2).waitFor(), changing: ['.rows-list .grow']},
  'flow-run': {place: () => `flows/short/${made.task}`, ready: page => page.locator('.node.done').nth(2).waitFor(), changing: ['.crumbs h1', '.node .faint', '.timeline', '.inline-form']},
  'flow-faults': {
    place: 'flows/broken',
    routes: {
      [`**${AT}/*/flows/broken`]: refusal(422, 'UNPROCESSABLE', 'the flow has faults'), [`**${AT}/*/tasks?*`]: json({tasks: []}),
      [`**${AT}/*/flows/broken/check`]: json({
        ok: false, notes: [{code: 'unused', file: 'tools.yaml', line: 2, column: 5, message: 'no node lists the tool grep'}],
        faults: [{code: 'unknown_node', file: 'workflow.yaml', line: 12, column: 9, message: 'the edge leads to sya, which is no node', hint: 'the nodes are begin, say and end'}],
      }),
    },
    ready: page => page.getByRole('link', {name: 'workflow.yaml:12:9'}).waitFor(),
  },
  'flow-run-asks': {
    place: () => `flows/short/${made.task}`,
    routes: () => ({
      '**/events*': never, [`**${AT}/*/tasks/${made.task}`]: json({...made.run, phase: 'running', waiting_for: [{}]}),
      [`**${AT}/*/waiting?*`]: json({waiting: [{chat_id: AN_ID, task_id: made.task, node: 'say', waiting_for: [{event: 'permission_required', data: {
        permission_id: AN_ID, call_id: AN_ID, tool: 'exec', category: 'shell', args: {command: 'git push'}, reason: 'It leaves this machine.', expires_at: '2090-01-01T00:00:00Z',
      }}]}]}),
    }),
    ready: async page => { await page.getByRole('button', {name: 'Allow once'}).waitFor(); await page.locator('.node').nth(2).waitFor(); }, changing: ['.crumbs h1', '.inline-form'],
  },
  'flow-evaluations': {
    place: 'flows/short?view=evaluations',
    routes: {[`**${AT}/*/evaluations?*`]: json({evaluations: [1, 0].map(failed => ({
      evaluation_id: `${AN_ID}-${failed}`, flow: {name: 'short'}, status: 'finished', passed: 2 - failed, failed, skipped: 0, total: 2, created_at: THEN,
      cases: [
        {suite: 'words', case: 'says hello', outcome: 'passed', duration_ms: 120},
        {suite: 'words', case: 'is short', duration_ms: 80, ...(failed ? {outcome: 'failed', failures: ['the output is another one'], differences: [{path: '/said', a: 'hi', b: 'hello'}]} : {outcome: 'passed'})},
      ],
    }))})},
    ready: page => page.getByText('1 failed').waitFor(),
  },
  'sandbox-failed': {place: 'sandbox', routes: {[`**${AT}/*/sandbox`]: json({state: 'failed', reason: 'The image of the sandbox cannot be read.'})}, ready: page => page.getByText('cannot be read').waitFor()},
  sandbox: {place: 'sandbox', ready: page => page.getByRole('textbox', {name: 'Command'}).waitFor(), changing: ['.page-head .badge', '.page-head .button', '.lead']},
  schedules: {place: 'schedules', ready: page => page.getByText('Brief').waitFor()},
  webhooks: {place: 'webhooks', ready: page => page.getByText('Team channel').waitFor()},
  'webhook-new': {place: 'webhooks', ready: page => page.getByText('Team channel').waitFor().then(() => page.getByRole('button', {name: 'New webhook'}).click())},
  'webhook-deliveries': {place: () => `webhooks/${made.webhook}`, ready: page => page.getByText(/Nothing was sent yet|delivered|pending/).first().waitFor(), routes: {'**/deliveries?*': json({deliveries: [
    {delivery_id: '1', webhook_id: '1', message_id: 'msg_1', type: 'turn.ended', timestamp: '2026-01-01T00:00:00Z', data: {}, status: 'delivered', attempts_made: 1, attempts: [{at: '2026-01-01T00:00:00Z', duration_ms: 12, status: 204}], created_at: '2026-01-01T00:00:00Z'},
    {delivery_id: '2', webhook_id: '1', message_id: 'msg_2', type: 'question.asked', timestamp: '2026-01-01T00:00:00Z', data: {}, status: 'failed', given_up: 'a day has passed', attempts_made: 9, attempts: [{at: '2026-01-01T00:00:00Z', duration_ms: 15_000, error: 'timed out'}], created_at: '2026-01-01T00:00:00Z'},
  ]})}},
  people: {place: 'people', ready: heading('You work alone here')},
  'people-members': {
    place: 'people', routes: {[`**${AT}/*/members?*`]: json({members: [{user_id: AN_ID, subject: 'ann@example.org', role: 'owner', added_at: THEN}, {user_id: `${AN_ID}-2`, subject: 'bob.with.a.long.name@example.org', role: 'viewer', added_at: THEN}]})},
    ready: page => page.getByRole('combobox', {name: /^Role of bob/}).waitFor(),
  },
  usage: {place: 'usage', ready: page => page.getByText('Tokens read').waitFor(), changing: ['td', '.tile dd']},
  'usage-error': {place: 'usage', routes: {'**/usage?*': failed}, ready: page => page.getByRole('alert').getByText('INTERNAL').waitFor()},
  'usage-no-right': {place: 'usage', routes: {'**/usage?*': refusal(403, 'FORBIDDEN', 'this needs the right to read, which a guest does not have', 'ask an admin of the workspace')}, ready: page => page.getByRole('alert').getByText('FORBIDDEN').waitFor()},
  health: {place: 'health', ready: page => page.getByText(/Hub, version/).waitFor(), changing: ['.rows-list .grow', '.rows-list .badge', '.tile dd']},
  'health-degraded': {
    place: 'health', routes: {'**/ready': json({status: 'ready', version: '1.0.0', degraded: {disk: 'less than 5 % of the disk is free'}})}, ready: page => page.getByText('less than 5 %').waitFor(),
    changing: ['.rows-list li:nth-child(n+4) > *', '.tile dd'],
  },
  reference: {
    at: () => '#/reference/make_note', ready: page => page.locator('.route[open]').getByText('How it is told.').waitFor(),
    changing: ['.route-body pre'],
    routes: {'**/openapi.json': json({
      info: {title: 'BuildScale', version: '1.0.0', description: 'Every error has the same envelope.'}, tags: [{name: 'notes', description: 'Words that are kept.'}],
      paths: {'/api/v1/notes': {
        get: {operationId: 'list_notes', tags: ['notes'], summary: 'The notes, newest first.', responses: {}},
        post: {
          operationId: 'make_note', tags: ['notes'], summary: 'Makes a note with its `text`.', parameters: [{name: 'Idempotency-Key', in: 'header', description: 'How it is told.', schema: {type: 'string'}}],
          requestBody: {required: true, content: {'application/json': {schema: {$ref: '#/components/schemas/Note'}}}},
          responses: {201: {description: 'It is kept.', content: {'application/json': {schema: {$ref: '#/components/schemas/Note'}}}}, 404: {$ref: '#/components/responses/404-NOT_FOUND'}},
        },
      }},
      components: {schemas: {Note: {type: 'object', description: 'A note.', required: ['text'], properties: {text: {type: 'string', description: 'The words.'}, about: {oneOf: [{type: 'null'}, {$ref: '#/components/schemas/Note'}]}}}}},
    })},
  },
  palette: {place: 'flows', ready: async page => { await heading('Flows')(page); await page.keyboard.press('Control+k'); await page.getByRole('dialog').getByRole('option').first().waitFor(); }},
  offline: {place: 'flows', ready: async page => { await heading('Flows')(page); await page.context().setOffline(true); await page.getByText('You are offline').waitFor(); }, end: page => page.context().setOffline(false)},
  reconnecting: {place: 'flows', routes: {'**/events*': route => route.abort()}, ready: async page => { await heading('Flows')(page); await page.getByText('Reconnecting').waitFor(); }},
};

for (const [name, state] of Object.entries(STATES)) {
  test(`the state looks as it did: ${name}`, async () => {
    const page = await context.newPage();
    const routes = typeof state.routes === 'function' ? state.routes() : state.routes ?? {};
    for (const [url, act] of Object.entries(routes)) await page.route(url, act);
    const place = typeof state.place === 'function' ? state.place() : state.place;
    const faults = [];
    // Drafts of the state.
    const kept = Object.entries(state.kept?.() ?? {}).map(([key, value]) => [`buildscale.${key}`, value]);
    await page.addInitScript(kept => kept.forEach(([key, value]) => localStorage.setItem(key, value)), kept);
    try {
      await page.goto(`${world.hub.url}/${state.at?.() ?? (place === undefined ? '' : `#/w/${world.workspace}/${place}`)}`);
      await state.ready(page);
      // The list of chats at the side is as long as other states make it.
      await settle(page, ['.chat-list li', ...(state.changing ?? [])]);
      for (const look of LOOKS) {
        faults.push(await compared(page, judge, name, look));
        faults.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth > 0 ? `it is too wide at ${innerWidth}` : undefined));
      }
    } finally {
      // A state that fails leaves nothing to the next one.
      await state.end?.(page);
      await page.evaluate(kept => kept.forEach(([key]) => localStorage.removeItem(key)), kept).catch(() => undefined);
      await page.close();
    }
    assert.deepEqual(faults.filter(fault => fault !== undefined), []);
  });
}

/** Each page with what is told while it loads. */
const LOADS = {
  'chats/CHAT': 'the chat', 'files/projects': '/projects', 'files/projects/code.py?view=history': '/projects/code.py', 'files?view=trash': 'the trash', 'files?view=tags': 'the tags', flows: 'the flows', 'flows/short': 'the flow', 'flows/short/TASK': 'the run',
  'flows/short?view=evaluations': 'the evaluations', sandbox: 'the state of the sandbox', schedules: 'the schedules', webhooks: 'the webhooks', people: 'the members', usage: 'the usage', health: 'the state of the hub',
};
const WAYS = {
  'that it loads': [never, (main, what) => main.getByText(`Loading ${what}…`, {exact: true}).first().waitFor()],
  'what to do about an error': [failed, main => main.getByRole('alert').filter({hasText: 'INTERNAL'}).filter({hasText: 'try again later'}).first().waitFor()],
  'which right is missing': [refusal(403, 'FORBIDDEN', 'this needs the right to read', 'ask an admin of the workspace'), main => main.getByRole('alert').filter({hasText: 'You do not have the right to do this'}).filter({hasText: 'ask an admin'}).first().waitFor()],
};
/** Shows a place of the page. Once this is over the place before is not in the document any more. */
const show = (page, place) => page.evaluate(to => new Promise(done => {
  addEventListener('hashchange', () => setTimeout(done), {once: true});
  location.hash = to;
}), `#/w/${world.workspace}/${place.replace('CHAT', made.chat).replace('TASK', made.task)}`);

for (const [told, [act, shows]] of Object.entries(WAYS)) {
  test(`each page tells ${told}`, async () => {
    const page = await context.newPage();
    try {
      await page.route(url => url.pathname.startsWith(`${AT}/${world.workspace}/`) || url.pathname === '/ready', act);
      await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats`);
      await heading('What should be done?')(page);
      for (const [place, what] of Object.entries(LOADS)) {
        await show(page, place);
        await shows(page.getByRole('main'), what);
      }
    } finally {
      await page.close();
    }
  });
}

/** Each list with an answer that has nothing, and what is told then. */
const EMPTY = {
  'files/projects': ['files?path=*', {entries: []}, 'This folder is empty'],
  'files?view=trash': ['files/trash?*', {files: []}, 'The trash is empty'],
  'files?view=tags': ['files/tags', {tags: []}, 'No file has a tag'],
  flows: ['flows', {flows: []}, 'There are no flows yet'],
  'flows/short?view=evaluations': ['evaluations?*', {evaluations: []}, 'This flow was not evaluated yet'],
  schedules: ['schedules?*', {schedules: []}, 'Nothing begins by itself'],
  webhooks: ['webhooks', {webhooks: []}, 'Nobody is told anything'],
  people: ['members?*', {members: []}, 'You work alone here'],
  usage: ['usage?*', {total: {turns: 0, calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0}, parts: [], other: []}, 'Nothing was used'],
};
test('each list tells that it is empty', async () => {
  const page = await context.newPage();
  try {
    for (const [rest, body] of Object.values(EMPTY)) await page.route(`**${AT}/${world.workspace}/${rest}`, json(body));
    await page.goto(`${world.hub.url}/#/w/${world.workspace}/chats`);
    await heading('What should be done?')(page);
    for (const [place, [, , told]] of Object.entries(EMPTY)) {
      await show(page, place);
      await heading(told)(page);
    }
  } finally {
    await page.close();
  }
});
