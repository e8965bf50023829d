// What the servers on the TypeScript SDK share: sessions over HTTP, and tools that depend on one another.

import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';

/** Serves requests of the legacy era, with a server and a transport a session. */
export function sessions(newServer, Transport) {
    const transports = new Map();
    return async (request, response) => {
        let transport = transports.get(request.headers['mcp-session-id']);
        if (transport === undefined) {
            const onsessioninitialized = (id) => transports.set(id, transport);
            transport = new Transport({ sessionIdGenerator: randomUUID, onsessioninitialized });
            await newServer().connect(transport);
        }
        await transport.handleRequest(request, response);
    };
}

/** Serves on a free port and says which. */
export function listen(serve) {
    const http = createServer(serve);
    http.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}/mcp`));
}

const events = new EventEmitter();
let hanging = 0;

/** Waits until the call is cancelled. */
export async function hang(signal) {
    hanging += 1;
    if (!signal.aborted) await once(signal, 'abort');
    hanging -= 1;
    events.emit('ended');
}

/** Waits until nothing hangs. */
export async function stopped() {
    while (hanging > 0) await once(events, 'ended');
    return 'stopped';
}
