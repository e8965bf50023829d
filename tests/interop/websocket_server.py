"""A server on websockets: it writes the messages itself, in the era of each request, and picks the subprotocol `mcp`.

    websocket_server.py ws      says `listening on URL` on stderr
"""

import asyncio
import json
import sys

from websockets.asyncio.server import serve

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
SERVER = {"name": "websocket_server.py", "version": "1.0.0"}
CAPABILITIES = {"tools": {}}
CACHE = {"ttlMs": 0, "cacheScope": "public"}
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602


class Refusal(Exception):
    """A request that is answered with an error of that code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def tool(name, **properties):
    types = {member: {"type": kind} for member, kind in properties.items()}
    return {"name": name, "inputSchema": {"type": "object", "properties": types, "required": list(types)}}


TOOLS = [tool("add", a="integer", b="integer"), tool("fail", message="string"), tool("count", n="integer")]


def text(value, is_error=False):
    return {"content": [{"type": "text", "text": str(value)}], "isError": is_error}


class Peer:
    """A connection. It is in the legacy era from `initialize` on, and before that only modern requests are answered."""

    def __init__(self, socket):
        self.socket = socket
        self.is_legacy = False

    async def send(self, **message):
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def serve(self):
        async for frame in self.socket:
            if not isinstance(frame, str):
                await self.socket.close(1003, "a message came in a binary frame")
                return
            message = json.loads(frame)
            if "id" in message:
                await self.answer(message["id"], message["method"], message.get("params", {}))

    async def answer(self, id, method, params):
        try:
            result = await self.result(method, params)
        except Refusal as refusal:
            await self.send(id=id, error={"code": refusal.code, "message": str(refusal)})
        else:
            await self.send(id=id, result=result)

    async def result(self, method, params):
        meta = params.get("_meta", {})
        if method == "initialize":
            self.is_legacy = True
            return {"protocolVersion": LEGACY, "capabilities": CAPABILITIES, "serverInfo": SERVER}
        if self.is_legacy:
            return await self.tools(method, params, meta, cache={})
        if meta.get(f"{META}protocolVersion") != MODERN or f"{META}clientCapabilities" not in meta:
            raise Refusal(INVALID_PARAMS, f"no envelope of {MODERN}")
        if method == "server/discover":
            result = {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, **CACHE}
        else:
            result = await self.tools(method, params, meta, cache=CACHE)
        return {"resultType": "complete", **result, "_meta": {f"{META}serverInfo": SERVER}}

    async def tools(self, method, params, meta, cache):
        if method == "tools/list":
            return {"tools": TOOLS, **cache}
        if method != "tools/call":
            raise Refusal(METHOD_NOT_FOUND, f"there is no {method}")
        arguments = params.get("arguments", {})
        match params["name"]:
            case "add":
                return text(arguments["a"] + arguments["b"])
            case "fail":
                return text(arguments["message"], is_error=True)
            case "count":
                await self.count(arguments["n"], meta.get("progressToken"))
                return text(arguments["n"])
        raise Refusal(INVALID_PARAMS, f"there is no tool {params['name']}")

    async def count(self, n, token):
        for step in range(1, n + 1):
            if token is not None:
                params = {"progressToken": token, "progress": step, "total": n}
                await self.send(method="notifications/progress", params=params)


async def talk(socket):
    if socket.subprotocol != "mcp":
        await socket.close(1002, "the subprotocol was not offered")
    await Peer(socket).serve()


async def main():
    async with serve(talk, "127.0.0.1", 0, subprotocols=["mcp"]) as server:
        port = server.sockets[0].getsockname()[1]
        print(f"listening on ws://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
        await server.serve_forever()


asyncio.run(main())
