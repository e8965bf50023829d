// A client on @modelcontextprotocol/sdk: it speaks the legacy era only. Behind a proxy that cuts it also ends its session.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { endSession, makeCalls, report, target, wire } from './calls.mjs';

const client = new Client({ name: 'typescript-v1-client', version: '1.0.0' });
const transport =
    wire === 'stdio'
        ? new StdioClientTransport({ command: target[0], args: target.slice(1) })
        : new StreamableHTTPClientTransport(new URL(target[0]));
// The client tells its transport what was agreed on, and nobody else.
let revision;
const learn = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
    revision = version;
    learn?.(version);
};
await client.connect(transport);
report({ revision });
await makeCalls((params, onprogress) => client.callTool(params, undefined, { onprogress }));
if (wire === 'http, cut') await endSession(transport);
await client.close();
