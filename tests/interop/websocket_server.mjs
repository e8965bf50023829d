// A server on ws: it writes the messages itself, in the era of each request, and picks no subprotocol.
//
//     websocket_server.mjs ws      says `listening on URL` on stderr

import { WebSocketServer } from 'ws';

const [MODERN, LEGACY] = ['2026-07-28', '2025-11-25'];
const META = 'io.modelcontextprotocol/';
const [METHOD_NOT_FOUND, INVALID_PARAMS] = [-32601, -32602];
const serverInfo = { name: 'websocket_server.mjs', version: '1.0.0' };
const capabilities = { tools: {} };
const cache = { ttlMs: 0, cacheScope: 'public' };

const tool = (name, properties) => ({
    name,
    inputSchema: { type: 'object', properties, required: Object.keys(properties) },
});
const [integer, string] = [{ type: 'integer' }, { type: 'string' }];
const tools = [tool('add', { a: integer, b: integer }), tool('fail', { message: string }), tool('count', { n: integer })];

const text = (value, isError = false) => ({ content: [{ type: 'text', text: String(value) }], isError });

/** A request that is answered with an error of that code. */
function refusal(code, message) {
    return Object.assign(new Error(message), { code });
}

/** A connection. It is in the legacy era from `initialize` on, and before that only modern requests are answered. */
class Peer {
    isLegacy = false;

    constructor(socket) {
        this.socket = socket;
        socket.on('message', (data, isBinary) => {
            if (isBinary) socket.close(1003, 'a message came in a binary frame');
            else this.hear(JSON.parse(data));
        });
    }

    send(message) {
        this.socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    }

    hear({ id, method, params = {} }) {
        if (id === undefined) return;
        try {
            this.send({ id, result: this.result(method, params) });
        } catch ({ code, message }) {
            this.send({ id, error: { code, message } });
        }
    }

    result(method, params) {
        const meta = params._meta ?? {};
        if (method === 'initialize') {
            this.isLegacy = true;
            return { protocolVersion: LEGACY, capabilities, serverInfo };
        }
        if (this.isLegacy) return this.tools(method, params, meta, {});
        if (meta[`${META}protocolVersion`] !== MODERN || meta[`${META}clientCapabilities`] === undefined) {
            throw refusal(INVALID_PARAMS, `no envelope of ${MODERN}`);
        }
        const discovered = { supportedVersions: [MODERN], capabilities, ...cache };
        const result = method === 'server/discover' ? discovered : this.tools(method, params, meta, cache);
        return { resultType: 'complete', ...result, _meta: { [`${META}serverInfo`]: serverInfo } };
    }

    tools(method, { name, arguments: args = {} }, { progressToken }, cache) {
        if (method === 'tools/list') return { tools, ...cache };
        if (method !== 'tools/call') throw refusal(METHOD_NOT_FOUND, `there is no ${method}`);
        if (name === 'add') return text(args.a + args.b);
        if (name === 'fail') return text(args.message, true);
        if (name !== 'count') throw refusal(INVALID_PARAMS, `there is no tool ${name}`);
        for (let progress = 1; progressToken !== undefined && progress <= args.n; progress += 1) {
            this.send({ method: 'notifications/progress', params: { progressToken, progress, total: args.n } });
        }
        return text(args.n);
    }
}

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => false });
server.on('connection', (socket) => new Peer(socket));
server.on('listening', () => console.error(`listening on ws://127.0.0.1:${server.address().port}/mcp`));
