// A proxy that cuts connections, in front of the server at the URL that it is given; its stderr says `listening on URL`.
//
// From the moment a client calls a tool until it comes back with `Last-Event-ID`, no result passes: with the first
// notification all connections are cut, and what the server has sent behind it is lost. A result that comes sooner ends the
// proxy, so that a client which has what it asked for has come back for it.

import { connect, createServer } from 'node:net';

const server = new URL(process.argv[2]);
const sockets = new Set();
let isArmed = false;

function cut() {
    for (const socket of sockets) socket.destroy();
}

/** The end of the first event that is a notification, or 0. */
function endOfNotification(data) {
    const begin = data.indexOf('"method":"notifications/');
    return begin < 0 ? 0 : data.indexOf('\n\n', begin) + 2;
}

const proxy = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname);
    for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
    ]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => sockets.delete(socket) && other.destroy());
    }
    client.on('data', (data) => {
        if (data.includes('"tools/call"')) isArmed = true;
        if (/\r\nlast-event-id: /i.test(data.toString('latin1'))) isArmed = false;
        upstream.write(data);
    });
    upstream.on('data', (data) => {
        const end = isArmed ? endOfNotification(data) : 0;
        if (end > 0) {
            upstream.pause();
            client.write(data.subarray(0, end), cut);
        } else if (isArmed && data.includes('"result"')) {
            console.error('a result has come before anything was lost');
            proxy.close();
            cut();
        } else {
            client.write(data);
        }
    });
});
proxy.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${proxy.address().port}${server.pathname}`));
