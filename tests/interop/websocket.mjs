// A client on ws: it opens a WebSocket and writes the messages itself, in the era that it is told.

import WebSocket from 'ws';
import { era, makeCalls, report, target } from './calls.mjs';

const REVISIONS = { modern: '2026-07-28', legacy: '2025-11-25' };
const clientInfo = { name: 'websocket.mjs', version: '1.0.0' };
const envelope = {
    'io.modelcontextprotocol/protocolVersion': REVISIONS.modern,
    'io.modelcontextprotocol/clientInfo': clientInfo,
    'io.modelcontextprotocol/clientCapabilities': {},
};

const socket = new WebSocket(target[0], ['mcp']);
const pending = new Map();
let lastId = 0;

socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('a message came in a binary frame');
    const { id, result, error, params } = JSON.parse(data);
    const { resolve, reject, onProgress } = pending.get(id ?? params.progressToken);
    if (id === undefined) onProgress?.(params);
    else if (error) reject(new Error(JSON.stringify(error)));
    else resolve(result);
});

function send(message) {
    socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

function request(method, params, onProgress) {
    lastId += 1;
    const id = lastId;
    const _meta = { ...(era === 'modern' ? envelope : {}), progressToken: id };
    send({ id, method, params: { ...params, _meta } });
    return new Promise((resolve, reject) => pending.set(id, { resolve, reject, onProgress }));
}

async function agree() {
    if (era === 'modern') {
        const { supportedVersions } = await request('server/discover', {});
        return supportedVersions.find((revision) => revision === REVISIONS.modern);
    }
    const hello = { protocolVersion: REVISIONS.legacy, capabilities: {}, clientInfo };
    const { protocolVersion } = await request('initialize', hello);
    send({ method: 'notifications/initialized' });
    return protocolVersion;
}

await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
if (socket.protocol !== 'mcp') throw new Error(`the subprotocol is "${socket.protocol}"`);
report({ revision: await agree() });
await makeCalls({ callTool: (params, { onprogress }) => request('tools/call', params, onprogress) });
const closed = new Promise((resolve) => socket.once('close', resolve));
socket.close(1000);
report({ closed: await closed });
