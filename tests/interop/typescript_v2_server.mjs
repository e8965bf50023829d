// A server on @modelcontextprotocol/server, which speaks both eras.
//
//     typescript_v2_server.mjs stdio
//     typescript_v2_server.mjs http      says `listening on URL` on stderr

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { acceptedContent, createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { hang, listen, sessions, stopped } from './sessions.mjs';

const MODERN = '2026-07-28';
const [integer, string] = [{ type: 'integer' }, { type: 'string' }];
const object = (properties) => fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

/** The tools that `register` has added. Over HTTP each modern request is answered by a server of its own. */
const added = new Set();
let modern;

function server() {
    const server = new McpServer({ name: 'typescript-v2-server', version: '1.0.0' });
    const tool = (name, properties, handle) => server.registerTool(name, { inputSchema: object(properties) }, handle);
    const add = (name) => tool(name, {}, () => text(`this is ${name}`));
    tool('add', { a: integer, b: integer }, ({ a, b }) => text(a + b));
    tool('fail', { message: string }, ({ message }) => ({ ...text(message), isError: true }));
    tool('count', { n: integer }, count);
    tool('question', {}, question);
    tool('hang', {}, async (_, { mcpReq }) => {
        await progress(mcpReq, 1);
        await hang(mcpReq.signal);
        return text('it was cancelled');
    });
    tool('stopped', {}, async () => text(await stopped()));
    tool('register', { name: string }, ({ name }, { mcpReq }) => {
        added.add(name);
        if (mcpReq.envelope && modern) modern.notify.toolsChanged();
        else add(name);
        return text(`${name} is there`);
    });
    added.forEach(add);
    server.registerResource('static-text', 'test://static-text', {}, (uri) => ({
        contents: [{ uri: uri.href, text: 'This is the content of the static text resource.' }],
    }));
    const argsSchema = object({ arg1: string, arg2: string });
    server.registerPrompt('test_prompt_with_arguments', { argsSchema }, ({ arg1, arg2 }) => {
        const content = { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` };
        return { messages: [{ role: 'user', content }] };
    });
    return server;
}

async function progress({ _meta, notify }, progress, total) {
    const { progressToken } = _meta ?? {};
    if (progressToken === undefined) return;
    await notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

async function count({ n }, { mcpReq }) {
    for (let step = 1; step <= n; step += 1) await progress(mcpReq, step, n);
    return text(n);
}

function question(_, { mcpReq }) {
    const answer = acceptedContent(mcpReq.inputResponses, 'user');
    if (answer) return text(`Hello, ${answer.name}!`);
    const requestedSchema = { type: 'object', properties: { name: string }, required: ['name'] };
    const user = inputRequired.elicit({ message: 'What is your name?', requestedSchema });
    return inputRequired({ inputRequests: { user } });
}

if (process.argv[2] === 'stdio') {
    serveStdio(server);
} else {
    modern = createMcpHandler(server, { legacy: 'reject' });
    const [serveModern, serveLegacy] = [toNodeHandler(modern), sessions(server, NodeStreamableHTTPServerTransport)];
    listen((request, response) => {
        const isModern = request.headers['mcp-protocol-version'] === MODERN;
        return isModern ? serveModern(request, response) : serveLegacy(request, response);
    });
}
