// Passes requests of the page on to a workspace of the hub. The token stays on this server; here an application checks who asks.
const hub = process.env.BUILDSCALE_URL ?? 'http://127.0.0.1:8686';
const token = process.env.BUILDSCALE_TOKEN;
const workspace = process.env.BUILDSCALE_WORKSPACE;

/** The three routes of a chat, and no other: the token could do more. */
const PATHS = /^ai-sdk\/chat(\/[\w-]{1,64}\/(stream|stop))?$/;

export const dynamic = 'force-dynamic';

async function pass(request: Request, {params}: {params: Promise<{path: string[]}>}): Promise<Response> {
  const path = (await params).path.join('/');
  if (!PATHS.test(path)) return new Response('Not found', {status: 404});
  if (!workspace) return new Response('BUILDSCALE_WORKSPACE is not set', {status: 500});
  const headers: Record<string, string> = {'content-type': 'application/json'};
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(`${hub}/api/v1/workspaces/${workspace}/${path}`, {
    method: request.method, headers, cache: 'no-store', signal: request.signal,
    ...(request.method === 'POST' ? {body: await request.text()} : {}),
  });
  // The body is passed on piece by piece, with the headers that mark it as a stream of the AI SDK.
  const passed = new Headers();
  for (const name of ['content-type', 'x-vercel-ai-ui-message-stream']) {
    const value = answer.headers.get(name);
    if (value) passed.set(name, value);
  }
  passed.set('cache-control', 'no-cache, no-transform');
  return new Response(answer.body, {status: answer.status, headers: passed});
}

export {pass as GET, pass as POST};
