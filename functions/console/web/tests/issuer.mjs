// A real OpenID provider (oidc-provider, certified by the OpenID Foundation) on this machine, with its own pages for signing in.
import {createServer} from 'node:http';
import Provider from 'oidc-provider';

export const AUDIENCE = 'https://buildscale.test';
export const CLIENT = 'buildscale-console';

/** Listens; `serve` begins with the address to which people are sent back. */
export async function startIssuer() {
  const server = createServer();
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const told = {};
  // Resolves when a refresh token was revoked.
  const revoked = new Promise(resolve => { told.revoked = resolve; });
  const serve = redirect => {
    const provider = new Provider(url, {
      clients: [{client_id: CLIENT, token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], redirect_uris: [redirect]}],
      clientBasedCORS: () => true,
      pkce: {required: () => true},
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      findAccount: (_, id) => ({accountId: id, claims: () => ({sub: id})}),
      cookies: {keys: ['for the tests alone']},
      features: {
        devInteractions: {enabled: true},
        revocation: {enabled: true},
        resourceIndicators: {
          enabled: true,
          defaultResource: () => AUDIENCE,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({scope: '', audience: AUDIENCE, accessTokenFormat: 'jwt', accessTokenTTL: 3600}),
        },
      },
    });
    provider.on('grant.revoked', () => told.revoked());
    server.on('request', provider.callback());
  };
  const stop = () => new Promise(resolve => { server.close(resolve); server.closeAllConnections(); });
  const env = {BUILDSCALE__AUTH__ISSUER: url, BUILDSCALE__AUTH__AUDIENCE: AUDIENCE, BUILDSCALE__AUTH__JWKS_URL: `${url}/jwks`, BUILDSCALE__AUTH__CONSOLE_CLIENT_ID: CLIENT};
  return {url, env, serve, stop, revoked};
}
