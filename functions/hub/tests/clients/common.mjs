// What the programs have in common: the hub and the workspace of the test, waiting on a condition, and the result as JSON.
import { existsSync } from 'node:fs';

export const base = process.env.HUB;
export const workspace = process.env.WORKSPACE;

const withoutWindows = '/usr/lib/chromium/chromium-headless-shell';
/** Chromium; where Debian has it the one without windows, which takes half of the processor time. */
export const chromiumProgram = process.env.CHROMIUM ?? (existsSync(withoutWindows) ? withoutWindows : '/usr/bin/chromium');

export async function until(fits) {
  for (;;) {
    const found = await fits();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** A picture of one dot, and whether a file of this name came into the workspace with a message. */
export const dot =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
export async function kept(name) {
  const body = JSON.stringify({ tool: 'find', args: { path: '/data/attachments', name } });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${base}/api/v1/workspaces/${workspace}/tools`, { method: 'POST', headers, body });
  return (await answer.json()).output.includes(`/${name}`);
}

export function finish(result) {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}
