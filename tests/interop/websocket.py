"""A client on websockets: it opens a WebSocket and writes the messages itself, in the era that it is told."""

import asyncio
import json
from types import SimpleNamespace

from websockets.asyncio.client import connect

import calls
from calls import ERA, TARGET, make_calls, report

REVISIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}
CLIENT = {"name": "websocket.py", "version": "1.0.0"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": REVISIONS["modern"],
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Peer(calls.Peer):
    """One request after another over a socket."""

    def __init__(self, socket):
        self.socket = socket
        self.last_id = 0

    async def send(self, **message):
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def request(self, method, params, on_progress=None):
        self.last_id += 1
        meta = {**(ENVELOPE if ERA == "modern" else {}), "progressToken": self.last_id}
        await self.send(id=self.last_id, method=method, params={**params, "_meta": meta})
        while True:
            frame = await self.socket.recv()
            if not isinstance(frame, str):
                raise TypeError("a message came in a binary frame")
            message = json.loads(frame, object_hook=lambda members: SimpleNamespace(**members))
            if getattr(message, "id", None) == self.last_id:
                if hasattr(message, "error"):
                    raise RuntimeError(message.error)
                return message.result
            await on_progress(message.params.progress, None, None)

    async def agree(self):
        if ERA == "modern":
            supported = (await self.request("server/discover", {})).supportedVersions
            return next(revision for revision in supported if revision == REVISIONS["modern"])
        hello = {"protocolVersion": REVISIONS["legacy"], "capabilities": {}, "clientInfo": CLIENT}
        revision = (await self.request("initialize", hello)).protocolVersion
        await self.send(method="notifications/initialized")
        return revision

    async def call(self, tool, arguments, on_progress):
        return await self.request("tools/call", {"name": tool, "arguments": arguments}, on_progress)

    def failed(self, result):
        return getattr(result, "isError", False)


async def main():
    # The server is on this machine, whatever proxy the environment names.
    socket = await connect(TARGET[0], subprotocols=["mcp"], proxy=None)
    if socket.subprotocol != "mcp":
        raise RuntimeError(f"the subprotocol is {socket.subprotocol}")
    peer = Peer(socket)
    report(revision=await peer.agree())

    await make_calls(peer)
    await socket.close(1000)
    report(closed=socket.close_code)


asyncio.run(main())
