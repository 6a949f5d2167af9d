// What the programs have in common: the hub and the workspace of the test, waiting on a condition, and the result as JSON.
export const base = process.env.HUB;
export const workspace = process.env.WORKSPACE;

export async function until(fits) {
  for (;;) {
    const found = await fits();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

export function finish(result) {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}
