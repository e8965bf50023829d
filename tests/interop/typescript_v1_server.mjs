// A server on @modelcontextprotocol/sdk, which speaks the legacy era only.
//
//     typescript_v1_server.mjs stdio
//     typescript_v1_server.mjs http      says `listening on URL` on stderr

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { hang, listen, sessions, stopped } from './sessions.mjs';

const [integer, string] = [z.number().int(), z.string()];
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

function server() {
    const server = new McpServer({ name: 'typescript-v1-server', version: '1.0.0' });
    const tool = (name, inputSchema, handle) => server.registerTool(name, { inputSchema }, handle);
    tool('add', { a: integer, b: integer }, ({ a, b }) => text(a + b));
    tool('fail', { message: string }, ({ message }) => ({ ...text(message), isError: true }));
    tool('count', { n: integer }, count);
    tool('question', {}, question);
    tool('hang', {}, async (_, extra) => {
        await progress(extra, 1);
        await hang(extra.signal);
        return text('it was cancelled');
    });
    tool('stopped', {}, async () => text(await stopped()));
    tool('register', { name: string }, ({ name }) => {
        tool(name, {}, () => text(`this is ${name}`));
        return text(`${name} is there`);
    });
    server.registerResource('static-text', 'test://static-text', {}, (uri) => ({
        contents: [{ uri: uri.href, text: 'This is the content of the static text resource.' }],
    }));
    const argsSchema = { arg1: string, arg2: string };
    server.registerPrompt('test_prompt_with_arguments', { argsSchema }, ({ arg1, arg2 }) => {
        const content = { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` };
        return { messages: [{ role: 'user', content }] };
    });
    return server;
}

async function progress({ _meta, sendNotification }, progress, total) {
    const { progressToken } = _meta ?? {};
    if (progressToken === undefined) return;
    await sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

async function count({ n }, extra) {
    for (let step = 1; step <= n; step += 1) await progress(extra, step, n);
    return text(n);
}

async function question(_, { sendRequest }) {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const params = { mode: 'form', message: 'What is your name?', requestedSchema };
    const { content } = await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
    return text(`Hello, ${content?.name}!`);
}

if (process.argv[2] === 'stdio') {
    await server().connect(new StdioServerTransport());
} else {
    listen(sessions(server, StreamableHTTPServerTransport));
}
