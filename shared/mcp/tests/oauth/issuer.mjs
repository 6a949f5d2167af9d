// A server of the Model Context Protocol and the issuer of its tokens, stricter than most: codes are good once, for the client, the address and the
// resource that they were asked for; PKCE is demanded; refresh tokens are rotated, and one that comes twice ends the account. It refuses what is
// wrong with a status that no client should take for a success, and counts what it was asked.
//
//   node issuer.mjs        prints its address, and ends with its standard input
//   POST /test/expire      makes every access token expired
//   GET /test/counts       counts by path
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const clients = new Map(), codes = new Map(), access = new Map(), refresh = new Map(), used = new Set(), counts = {};
// The host of the server may be another one than that of the issuer.
let origin, server;
const lifetime = Number(process.env.LIFETIME ?? 3600);

const json = (res, status, body, headers = {}) => {
    res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
    res.end(JSON.stringify(body));
};

function authenticated(req, form) {
    const header = req.headers.authorization;
    let id = form.get('client_id'), secret;
    if (header) {
        // RFC 6749 §2.3.1: both are encoded as in a form.
        const decoded = (text) => decodeURIComponent(text.replaceAll('+', ' '));
        [id, secret] = Buffer.from(header.replace(/^Basic /, ''), 'base64').toString().split(':').map(decoded);
        if (form.has('client_id') || form.has('client_secret')) return null;
    }
    const client = clients.get(id);
    return client && client.secret === secret ? client : null;
}

function issue(res, client, resource, scope) {
    const token = `access-${randomUUID()}`, renewal = `refresh-${randomUUID()}`;
    access.set(token, { resource, until: Date.now() + lifetime * 1000 });
    refresh.set(renewal, { client, resource, scope });
    json(res, 200, { access_token: token, token_type: 'Bearer', expires_in: lifetime, refresh_token: renewal, scope });
}

function token(req, res, form) {
    const client = authenticated(req, form);
    if (!client) return json(res, 401, { error: 'invalid_client' });
    if (form.get('grant_type') === 'authorization_code') {
        const code = codes.get(form.get('code'));
        codes.delete(form.get('code'));
        const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
        const fits = code && code.client === client && code.redirect === form.get('redirect_uri')
            && code.challenge === challenge && code.resource === form.get('resource');
        return fits ? issue(res, client, code.resource, code.scope) : json(res, 400, { error: 'invalid_grant' });
    }
    const name = form.get('refresh_token'), known = refresh.get(name);
    refresh.delete(name);
    if (used.has(name)) { access.clear(); refresh.clear(); }
    used.add(name);
    const fits = known && known.client === client && known.resource === form.get('resource');
    return fits ? issue(res, client, known.resource, known.scope) : json(res, 400, { error: 'invalid_grant' });
}

function authorize(res, query) {
    const client = clients.get(query.get('client_id')), redirect = query.get('redirect_uri');
    if (!client?.redirects.includes(redirect)) return json(res, 400, { error: 'invalid_request' });
    const back = new URL(redirect);
    back.searchParams.set('state', query.get('state'));
    back.searchParams.set('iss', process.env.WRONG_ISS ?? origin);
    const fits = query.get('response_type') === 'code' && query.get('code_challenge_method') === 'S256'
        && query.get('code_challenge')?.length === 43 && query.get('resource') === `${server}/mcp`
        && query.get('scope') === 'tools' && query.get('state')?.length >= 32;
    if (!fits || process.env.DENY) {
        back.searchParams.set('error', fits ? 'access_denied' : 'invalid_request');
    } else {
        const code = `code-${randomUUID()}`;
        codes.set(code, { client, redirect, challenge: query.get('code_challenge'), resource: query.get('resource'), scope: 'tools' });
        back.searchParams.set('code', code);
    }
    res.writeHead(302, { location: back.href });
    res.end();
}

const tool = { name: 'whoami', description: 'Says who you are.', inputSchema: { type: 'object' } };
// A tool that no account has the scope for.
const rule = { name: 'rule', description: 'Rules.', inputSchema: { type: 'object' } };
function answer(message) {
    switch (message.method) {
        case 'initialize':
            return { protocolVersion: message.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'guarded', version: '1' } };
        case 'tools/list': return { tools: process.env.RULE ? [tool, rule] : [tool] };
        case 'tools/call': return { content: [{ type: 'text', text: 'you are signed in' }] };
        default: return {};
    }
}

function mcp(req, res, text) {
    const given = (req.headers.authorization ?? '').replace(/^Bearer /, ''), known = access.get(given);
    if (!known || known.until <= Date.now() || known.resource !== `${server}/mcp`) {
        const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
        return json(res, 401, { error: 'invalid_token' }, { 'www-authenticate': `Bearer ${metadata}, scope="tools"` });
    }
    if (req.method !== 'POST') return json(res, 405, {});
    const message = JSON.parse(text);
    if (message.id === undefined) { res.writeHead(202); return res.end(); }
    if (message.method === 'tools/call' && message.params.name === 'rule') {
        return json(res, 403, { error: 'insufficient_scope' }, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="all"' });
    }
    json(res, 200, { jsonrpc: '2.0', id: message.id, result: answer(message) });
}

const listener = createServer((req, res) => {
    const url = new URL(req.url, origin);
    counts[url.pathname] = (counts[url.pathname] ?? 0) + 1;
    let text = '';
    req.on('data', (piece) => { text += piece; });
    req.on('end', () => {
        switch (url.pathname) {
            case '/.well-known/oauth-protected-resource/mcp':
                return json(res, 200, { resource: process.env.WRONG_RESOURCE ?? `${server}/mcp`, authorization_servers: [origin], scopes_supported: ['tools', 'all'] });
            case '/.well-known/oauth-authorization-server':
                return json(res, 200, {
                    issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`,
                    registration_endpoint: `${origin}/register`, code_challenge_methods_supported: ['S256'],
                    token_endpoint_auth_methods_supported: ['client_secret_basic'], authorization_response_iss_parameter_supported: true,
                });
            case '/register': {
                const asked = JSON.parse(text), client = { id: `client ${randomUUID()}`, secret: `secret:${randomUUID()}`, redirects: asked.redirect_uris };
                if (asked.token_endpoint_auth_method !== 'client_secret_basic') return json(res, 400, { error: 'invalid_client_metadata' });
                clients.set(client.id, client);
                return json(res, 201, { client_id: client.id, client_secret: client.secret, ...asked });
            }
            case '/authorize': return authorize(res, url.searchParams);
            case '/token': return token(req, res, new URLSearchParams(text));
            case '/mcp': return mcp(req, res, text);
            case '/test/expire':
                access.clear();
                return json(res, 200, {});
            case '/test/end':
                access.clear();
                refresh.clear();
                return json(res, 200, {});
            case '/test/counts': return json(res, 200, counts);
            default: return json(res, 404, {});
        }
    });
});
// A client that was registered by hand.
if (process.env.CLIENT) clients.set(process.env.CLIENT, { id: process.env.CLIENT, secret: process.env.SECRET, redirects: [process.env.REDIRECT] });
listener.listen(0, '127.0.0.1', () => {
    const { port } = listener.address();
    origin = `http://127.0.0.1:${port}`;
    server = `http://${process.env.SERVER_HOST ?? '127.0.0.1'}:${port}`;
    console.log(origin);
});
process.stdin.on('end', () => process.exit(0)).resume();
