// A server on the official TypeScript SDK, written as its documentation shows it.
//
//     server.mjs http       says `listening on URL` on stderr
//     server.mjs stdio
//     server.mjs version    prints the SDK's name and version
//
// Calls are answered with JSON, the fastest that the SDK offers: in the modern era it is the default, where nothing else is
// sent before. A legacy client gets a session.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const SDK = '@modelcontextprotocol/server';
const MODERN = '2026-07-28';
const [integer, string] = [{ type: 'integer' }, { type: 'string' }];
const object = (properties) => fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });

const addends = object({ a: integer, b: integer });
const words = object({ text: string });

function peer() {
    const server = new McpServer({ name: 'peer', version: '1' });
    server.registerTool('add', { description: 'Add two integers', inputSchema: addends }, ({ a, b }) => text(a + b));
    server.registerTool('echo', { description: 'Say it again', inputSchema: words }, (said) => text(said.text));
    return server;
}

function http() {
    const serveModern = toNodeHandler(createMcpHandler(peer, { legacy: 'reject' }));
    const serveLegacy = sessions();
    const server = createServer((request, response) => {
        const isModern = request.headers['mcp-protocol-version'] === MODERN;
        return isModern ? serveModern(request, response) : serveLegacy(request, response);
    });
    server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`));
}

/** Serves the legacy era, with a server and a transport a session. */
function sessions() {
    const transports = new Map();
    return async (request, response) => {
        let transport = transports.get(request.headers['mcp-session-id']);
        if (transport === undefined) {
            const onsessioninitialized = (id) => transports.set(id, transport);
            const options = { sessionIdGenerator: randomUUID, enableJsonResponse: true, onsessioninitialized };
            transport = new NodeStreamableHTTPServerTransport(options);
            await peer().connect(transport);
        }
        await transport.handleRequest(request, response);
    };
}

/** The package does not export its manifest. */
function version() {
    const manifest = new URL(`node_modules/${SDK}/package.json`, import.meta.url);
    console.log(`${SDK} ${JSON.parse(readFileSync(manifest)).version}`);
}

const modes = { http, stdio: () => serveStdio(peer), version };
const mode = modes[process.argv[2]];
if (mode === undefined) {
    console.error('usage: server.mjs http | stdio | version');
    process.exit(1);
}
mode();
