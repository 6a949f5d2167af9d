// Chats whose agents call functions of programs.
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {serveTools} from '../../../../clients/typescript/dist/index.js';
import {begin} from './browser.mjs';

test('a chat that waits for a program needs nobody', async () => {
  const script = fileURLToPath(new URL('../../../../clients/typescript/test/tools.yaml', import.meta.url));
  const world = await begin({env: {BUILDSCALE__AI__SCRIPT: script, BUILDSCALE__AI__MODEL: 'scripted/script'}});
  const program = new AbortController();
  let goOn, connected;
  const seen = new Promise(done => { goOn = done; });
  const open = new Promise(done => { connected = done; });
  const parameters = {type: 'object', properties: {at: {type: 'string'}}};
  const look = {description: 'Looks at something.', parameters, effects: 'read', run: async ({at}) => { await seen; return `a ${at}`; }};
  const serving = serveTools(world.api, world.workspace, {look}, {signal: program.signal, onConnection: ({state}) => state === 'open' && connected()});
  try {
    await open;
    const chat = await world.chat('look around');
    const page = await world.open(`chats/${chat}`);
    const allow = page.getByRole('button', {name: 'Allow once'});
    await allow.click();
    await page.locator('.chat-head').getByText('waits for a program').waitFor();
    await page.getByText('needs you').waitFor({state: 'detached'});
    goOn();
    // The second call of the agent is asked about, too.
    await allow.click();
    await page.getByText('Seen: a moon, a sun.').waitFor();
    await page.getByText('waits for a program').first().waitFor({state: 'detached'});
    await page.context().close();
  } finally {
    goOn();
    program.abort();
    await serving;
    await world.end();
  }
});
