// An OpenID Connect provider for tests: real, and told by them who there is. It prints its address.
//
//   node provider.mjs FOLDER   FOLDER is where .ci/oidc-tools has installed the packages
//
// The test sets things up by requests under /test:
//   POST /test/client   { "base": "http://127.0.0.1:7117" }   where Berth is
//   POST /test/people   { "kim": { "groups": ["ml"] } }       who there is
//   POST /test/rotate                                         signs with a new key from now on
//   GET /test/asked                                           how often it was asked for a token
// A browser that signs in is asked for nothing but a name: POST /interaction/UID with login=NAME.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import http from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const entry = join(process.argv[2], 'node_modules/oidc-provider/lib/index.js');
const library = await import(pathToFileURL(entry));
const Provider = library.Provider ?? library.default;

let provider;
let answer;
let key = newKey();
let base = 'http://127.0.0.1:1';
let people = {};
let asked = 0;
const cookieKeys = [randomUUID()];

function newKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
}

function start(issuer) {
  provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'berth',
        client_secret: 'a secret of the tests',
        redirect_uris: [`${base}/v1/session/oidc/callback`],
        post_logout_redirect_uris: [`${base}/`],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: cookieKeys },
    claims: {
      openid: ['sub'],
      profile: ['preferred_username', 'name'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    scopes: ['openid', 'profile', 'email', 'groups'],
    // The groups come with the user info, the rest with the token: Berth has to find both.
    conformIdTokenClaims: process.env.BERTH_OIDC_ALL_IN_TOKEN !== 'yes',
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    async findAccount(_, id) {
      const name = id.replace('id-', '');
      const person = people[name];
      if (!person) return undefined;
      const claims = { sub: id, preferred_username: name, name, ...person };
      return { accountId: id, claims: async () => claims };
    },
    // Nobody is asked whether Berth may know who they are.
    async loadExistingGrant(ctx) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  provider.on('server_error', (_, error) => console.error(error));
  answer = provider.callback();
}

async function body(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

const page = (uid) => `<!doctype html><title>Provider</title>
<form method="post" action="/interaction/${uid}">
<label>Name <input name="login" autofocus></label> <button>Sign in</button></form>`;

async function interact(request, response, uid) {
  if (request.method === 'GET') {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    return response.end(page(uid));
  }
  const login = new URLSearchParams(await body(request)).get('login');
  const result = people[login]
    ? { login: { accountId: `id-${login}` } }
    : { error: 'access_denied', error_description: 'nobody has this name' };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function told(request, what, issuer) {
  const said = JSON.parse((await body(request)) || '{}');
  if (what === 'client') base = said.base;
  else if (what === 'people') people = said;
  else if (what === 'rotate') key = newKey();
  else return false;
  start(issuer);
  return true;
}

const server = http.createServer(async (request, response) => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const [, first, second] = new URL(request.url, issuer).pathname.split('/');
  if (first === 'test' && request.method === 'POST') {
    response.statusCode = (await told(request, second, issuer)) ? 204 : 404;
    return response.end();
  }
  if (first === 'test' && second === 'asked') return response.end(String(asked));
  if (first === 'token') asked += 1;
  if (first === 'interaction') return interact(request, response, second);
  return answer(request, response);
});

server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  start(issuer);
  console.log(issuer);
});
// It goes with whoever started it.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
