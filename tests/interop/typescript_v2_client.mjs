// A client on @modelcontextprotocol/client: it speaks both eras, and by default the legacy one. Behind a proxy that cuts it
// also ends its session.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { endSession, era, makeCalls, report, target, wire } from './calls.mjs';

const MODES = { modern: { pin: '2026-07-28' }, legacy: 'legacy', either: 'auto' };

const client = new Client(
    { name: 'typescript-v2-client', version: '1.0.0' },
    { versionNegotiation: { mode: MODES[era] } },
);
const transport =
    wire === 'stdio'
        ? new StdioClientTransport({ command: target[0], args: target.slice(1) })
        : new StreamableHTTPClientTransport(new URL(target[0]));
await client.connect(transport);
report({ revision: client.getNegotiatedProtocolVersion() });
await makeCalls((params, onprogress) => client.callTool(params, { onprogress }));
if (wire === 'http, cut') await endSession(transport);
await client.close();
