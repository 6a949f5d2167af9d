// The pictures of the console in docs/, from a hub with scripted data: scripts/console --pictures. A picture that looks like the one that is kept
// stays as it is: ids and amounts of time are others in each run.
import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {watchTask} from '../../../../clients/typescript/dist/index.js';
import {begin, PATIENCE} from './browser.mjs';
import {contextFor, differs, MOST, still, TYPEFACE} from './looks.mjs';

const read = name => readFile(new URL(name, import.meta.url), 'utf8');
const folder = await mkdtemp(join(tmpdir(), 'pictures-'));
const script = join(folder, 'script.yaml');
const demo = await read('../../../../shared/models/src/demo.yaml');
const own = await read('pictures.yaml');
// The first rule that fits is taken.
await writeFile(script, demo.replace(/^rules:$/m, () => `rules:\n${own}`));

const world = await begin({name: 'Research', env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
const {api, path} = world;
const write = (to, content) => api.put('/api/v1/workspaces/{workspace_id}/files/by-path', {path, query: {path: to}, body: {content}});
const context = await contextFor(world.browser, {deviceScaleFactor: 1});
context.setDefaultTimeout(PATIENCE);
const judge = await (await world.browser.newContext()).newPage();

/** Takes the picture of a place, once it is whole. */
async function take(name, place, height, ready) {
  const page = await context.newPage();
  await page.setViewportSize({width: 1280, height});
  await page.goto(`${world.hub.url}/#/w/${world.workspace}/${place}`);
  await page.addStyleTag({content: `${TYPEFACE} :root:root { --font: Look; caret-color: transparent; }`});
  await page.evaluate(() => document.fonts.load('16px Look').then(() => document.fonts.ready));
  await ready(page);
  // No row is marked only because the pointer is there.
  await page.mouse.move(0, height - 1);
  const taken = await still(page);
  await page.close();
  const file = new URL(`../../../../docs/${name}.png`, import.meta.url);
  const kept = await readFile(file).catch(() => undefined);
  const share = kept ? await differs(judge, kept, taken) : 1;
  if (share > MOST) await writeFile(file, taken);
  console.log(`docs/${name}.png ${share > MOST ? 'is new' : 'stays as it is'}: ${(100 * share).toFixed(1)} % of it looks different`);
}

try {
  await write('/data/reports/first-quarter.md', '# First quarter\n\nOrders: 1,204. Returned: 61.\n');
  await write('/data/reports/second-quarter.md', '# Second quarter\n\nOrders: 1,391. Returned: 48.\n');
  await write('/projects/parser/notes.md', '# Notes\n\nA token is a word in small letters.\n');
  await write('/projects/parser/lexer.py', 'def token(text):\n    return text.split()\n');
  await write('/projects/parser/lexer.py', 'def token(text):\n    for word in text.split():\n        yield word.lower()\n\n\ndef last(text):\n    return text.split()[-1]\n');
  const asks = async chat => {
    const at = {path: {...path, chat_id: chat}};
    while ((await api.get('/api/v1/workspaces/{workspace_id}/chats/{chat_id}', at)).status !== 'suspended') await new Promise(done => setTimeout(done, 50));
  };
  // One after the other: the list has the last one first.
  await asks(await world.chat('Ask me something'));
  await asks(await world.chat('Run a command'));
  await world.rests(await world.chat('Document the parser'));
  const chat = await world.chat('Compare the reports in /data and write a summary');
  await world.rests(chat);
  const {task_id: task} = await api.post('/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks', {path: {...path, flow: 'plan_and_execute'}, body: {input: {goal: 'Document the parser'}}});
  for await (const event of watchTask(api, {workspace: world.workspace, task}, {after: 0})) void event;

  await take('console', `chats/${chat}`, 760, async page => {
    const log = page.getByRole('log', {name: 'Conversation'});
    await log.getByText('13 fewer returns').waitFor();
    await log.getByRole('button', {name: /^edit/}).click();
    await log.getByText('+| second | 1,391 | 48 |').waitFor();
    await log.evaluate(element => { element.scrollTop = element.scrollHeight; });
  });
  await take('console-files', 'files/projects/parser/lexer.py?view=history', 560, async page => {
    await page.getByRole('textbox', {name: /Differences of/}).getByText('yield word').waitFor();
    await page.getByText('notes.md').waitFor();
  });
  await take('console-flow', `flows/plan_and_execute/${task}`, 760, async page => {
    await page.locator('.node.done').getByText('Report', {exact: true}).waitFor();
    await page.locator('.node').getByText('done 2/2').waitFor();
    await page.locator('.json').getByText(/Both steps of the demo were done/).waitFor();
  });
} finally {
  await world.end();
  await rm(folder, {recursive: true});
}
