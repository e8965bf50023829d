// A server on @modelcontextprotocol/server, which speaks both eras.
//
//     typescript_server.mjs stdio
//     typescript_server.mjs http      says `listening on URL` on stderr

import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties) => fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

function tools() {
    const server = new McpServer({ name: 'typescript-server', version: '1.0.0' });
    const numbers = object({ a: { type: 'integer' }, b: { type: 'integer' } });
    server.registerTool('add', { inputSchema: numbers }, ({ a, b }) => text(a + b));
    const message = object({ message: { type: 'string' } });
    server.registerTool('fail', { inputSchema: message }, ({ message }) => ({ ...text(message), isError: true }));
    server.registerTool('count', { inputSchema: object({ n: { type: 'integer' } }) }, count);
    return server;
}

async function count({ n }, context) {
    const { progressToken } = context.mcpReq._meta ?? {};
    for (let progress = 1; progressToken !== undefined && progress <= n; progress += 1) {
        const params = { progressToken, progress, total: n };
        await context.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return text(n);
}

if (process.argv[2] === 'stdio') {
    serveStdio(tools);
} else {
    const http = createServer(toNodeHandler(createMcpHandler(tools)));
    http.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}/mcp`));
}
