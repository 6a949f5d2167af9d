// A real hub for tests: its own data folder, its own port, the offline demo model.
import {spawn} from 'node:child_process';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';

const program = process.env.BUILDSCALE_BIN;
if (!program) throw new Error('BUILDSCALE_BIN is to be the path of the binary `buildscale`; scripts/sdk and scripts/console --test set it');

/** Starts a hub. `kill` is SIGKILL, and `restart` starts it again at the same address with the same data. `keepsKeys` leaves it the keys of the environment. */
export async function startHub({args = [], env = {}, keepsKeys = false} = {}) {
  const data = await mkdtemp(join(tmpdir(), 'buildscale-'));
  const hub = {url: '', data, child: undefined};
  const start = async listen => {
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => keepsKeys || !/_API_KEY$|^BUILDSCALE|^OPENAI/.test(name)));
    const child = spawn(program, ['serve', '--listen', listen, '--data-dir', data, '--json', ...args], {env: {...clean, ...env}, stdio: ['ignore', 'pipe', 'pipe']});
    let log = '';
    child.stderr.on('data', piece => { log = (log + piece).slice(-4000); });
    hub.child = child;
    const lines = createInterface({input: child.stdout});
    const address = await new Promise((resolve, reject) => {
      lines.once('line', line => resolve(JSON.parse(line).address));
      // After its last words: an exit may be told before them.
      child.once('close', code => reject(new Error(`the hub ended with ${code}:\n${log}`)));
    });
    hub.url = String(address).startsWith('http') ? String(address) : `http://${address}`;
  };
  const ended = () => new Promise(resolve => hub.child.exitCode !== null || hub.child.signalCode !== null ? resolve() : hub.child.once('exit', resolve));
  hub.kill = async () => {
    hub.child.kill('SIGKILL');
    await ended();
  };
  hub.restart = async () => {
    for (const late = AbortSignal.timeout(30_000);;) {
      try {
        return await start(new URL(hub.url).host);
      } catch (error) {
        // A connection of another program may have the port for a moment.
        if (late.aborted || !/in use/i.test(error.message)) throw error;
        await new Promise(done => setTimeout(done, 100));
      }
    }
  };
  hub.stop = async () => {
    await hub.kill();
    await rm(data, {recursive: true, force: true});
  };
  await start('127.0.0.1:0');
  return hub;
}
