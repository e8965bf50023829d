"""A server on mcp 2, which speaks both eras.

    python_server.py stdio
    python_server.py http      says `listening on URL` on stderr
"""

import asyncio
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("python-server")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def fail(message: str) -> None:
    raise ToolError(message)


@server.tool()
async def count(n: int, context: Context) -> int:
    for step in range(1, n + 1):
        await context.report_progress(step, n)
    return n


async def http():
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    await uvicorn.Server(config).serve([listener])


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    asyncio.run(http())
