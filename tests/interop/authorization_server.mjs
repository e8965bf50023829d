// An authorization server, npm's oidc-provider, and in front of an MCP server what lets in those with its tokens.
//
// authorization_server.mjs SERVER-URL CLIENT FILE TOOL OTHER-TOOL
//
// CLIENT is run twice, with FILE for what it keeps: it calls both tools, of which the other one needs a scope of its own;
// then, when all access tokens have ended, the first one again. Users agree to everything at once. A JSON line a run says
// what the authorization server was asked for meanwhile, and what the client printed.

import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const [target, client, file, tool, otherTool] = process.argv.slice(2);

const http = createServer((request, response) => handle(request, response));
await new Promise((ready) => http.listen(0, '127.0.0.1', ready));
const origin = `http://127.0.0.1:${http.address().port}`;
const resource = `${origin}/mcp`;
let asked = [];
const seen = new Set();
const ended = new Set();

const provider = new Provider(origin, {
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  cookies: { keys: ['interop'] },
  features: {
    devInteractions: { enabled: false },
    // Tokens are anybody's, as the MCP server does not say that it takes others.
    dPoP: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => ({ scope: 'mcp other', accessTokenTTL: 600, accessTokenFormat: 'opaque' }),
      useGrantedResource: () => true,
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  responseTypes: ['code'],
  rotateRefreshToken: true,
  scopes: ['offline_access'],
  ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
});
const oidc = provider.callback();
provider.on('registration_create.success', () => asked.push('registration'));
provider.on('authorization.success', ({ oidc: { params } }) => asked.push(`login for ${params.scope}`));
provider.on('grant.success', ({ oidc: { params } }) => asked.push(params.grant_type));

// The user is Ada, and wants all of it.
async function agree(request, response) {
  const { params, grantId } = await provider.interactionDetails(request, response);
  const grant = (grantId && (await provider.Grant.find(grantId))) ?? new provider.Grant({ accountId: 'ada', clientId: params.client_id });
  grant.addOIDCScope('offline_access');
  grant.addResourceScope(params.resource ?? resource, params.scope ?? '');
  const result = { login: { accountId: 'ada' }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function refuse(response, status, parameters) {
  const said = Object.entries({ resource_metadata: `${origin}/.well-known/oauth-protected-resource/mcp`, ...parameters });
  const challenge = said.map(([name, value]) => `${name}="${value}"`).join(', ');
  response.writeHead(status, { 'WWW-Authenticate': `Bearer ${challenge}` }).end();
}

// Lets in who may do that, and hands on what the MCP server answers.
async function guard(request, response) {
  const body = await read(request);
  const [, token] = (request.headers.authorization ?? '').split(' ');
  const found = token && (await provider.AccessToken.find(token));
  seen.add(token);
  if (!found || found.aud !== resource || ended.has(token)) return refuse(response, 401, { scope: 'mcp' });
  const wanted = body.length > 0 && JSON.parse(body).params?.name === otherTool ? 'other' : 'mcp';
  if (!found.scope.split(' ').includes(wanted)) {
    return refuse(response, 403, { error: 'insufficient_scope', scope: wanted });
  }
  const { host, connection, authorization, 'content-length': length, ...headers } = request.headers;
  const sent = { method: request.method, headers, body: body.length > 0 ? body : undefined };
  const answer = await fetch(target, sent);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const chunk of answer.body ?? []) response.write(chunk);
  response.end();
}

function json(response, value) {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

async function handle(request, response) {
  const { pathname } = new URL(request.url, origin);
  try {
    if (pathname === '/mcp') return await guard(request, response);
    if (pathname.startsWith('/interaction/')) return await agree(request, response);
    if (pathname === '/.well-known/oauth-protected-resource/mcp') {
      return json(response, { resource, authorization_servers: [origin] });
    }
    return await oidc(request, response);
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
}

// What was asked for while the client called these tools.
async function run(...tools) {
  asked = [];
  const said = await new Promise((resolve, reject) => {
    execFile(client, ['authorized', resource, file, ...tools], (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
  console.log(JSON.stringify({ asked, said: said.trim().split('\n') }));
}

await run(tool, otherTool);
for (const token of seen) ended.add(token);
await run(tool);
process.exit();
