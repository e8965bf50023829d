// A client on @modelcontextprotocol/client: it speaks both eras, and by default the legacy one.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { era, makeCalls, report, target, wire } from './calls.mjs';

const MODES = { modern: { pin: '2026-07-28' }, legacy: 'legacy', either: 'auto' };

const client = new Client(
    { name: 'typescript-v2-client', version: '1.0.0' },
    { versionNegotiation: { mode: MODES[era] } },
);
const transport =
    wire === 'http'
        ? new StreamableHTTPClientTransport(new URL(target[0]))
        : new StdioClientTransport({ command: target[0], args: target.slice(1) });
await client.connect(transport);
report({ revision: client.getNegotiatedProtocolVersion() });
await makeCalls((params, onprogress) => client.callTool(params, { onprogress }));
await client.close();
