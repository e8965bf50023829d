// A client on @modelcontextprotocol/client: it speaks both eras, and by default the legacy one. Behind a proxy that cuts it
// also ends its session.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answer, endSession, era, makeCalls, report, target, wire } from './calls.mjs';

const MODES = { modern: { pin: '2026-07-28' }, legacy: 'legacy', either: 'auto' };

const client = new Client(
    { name: 'typescript-v2-client', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: MODES[era] } },
);
client.setRequestHandler('elicitation/create', ({ params }) => answer(params));
const transport =
    wire === 'stdio'
        ? new StdioClientTransport({ command: target[0], args: target.slice(1) })
        : new StreamableHTTPClientTransport(new URL(target[0]));
await client.connect(transport);
report({ revision: client.getNegotiatedProtocolVersion() });
client.hearChange = async () => {
    const heard = new Promise((resolve) => client.setNotificationHandler('notifications/tools/list_changed', resolve));
    const subscription = client.getProtocolEra() === 'modern' && (await client.listen({ toolsListChanged: true }));
    return { heard, close: () => subscription && subscription.close() };
};
await makeCalls(client);
if (wire === 'http, cut') await endSession(transport);
await client.close();
