// A client on @modelcontextprotocol/sdk: it speaks the legacy era only. Behind a proxy that cuts it also ends its session.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { answer, endSession, makeCalls, report, target, wire } from './calls.mjs';

function connection() {
    if (wire === 'stdio') return new StdioClientTransport({ command: target[0], args: target.slice(1) });
    if (wire.startsWith('http')) return new StreamableHTTPClientTransport(new URL(target[0]));
    return new WebSocketClientTransport(new URL(target[0]));
}

const client = new Client({ name: 'typescript-v1-client', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
const transport = connection();
// The client tells its transport what was agreed on, and nobody else.
let revision;
const learn = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
    revision = version;
    learn?.(version);
};
await client.connect(transport);
report({ revision });
await makeCalls({
    callTool: (params, options) => client.callTool(params, undefined, options),
    readResource: (params) => client.readResource(params),
    getPrompt: (params) => client.getPrompt(params),
    listTools: () => client.listTools(),
    async hearChange() {
        const heard = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
        return { heard };
    },
});
if (wire === 'http, cut') await endSession(transport);
await client.close();
