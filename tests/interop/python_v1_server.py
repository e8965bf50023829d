"""A server on mcp 1, which speaks the legacy era only.

    python_v1_server.py stdio
    python_v1_server.py http      says `listening on URL` on stderr
    python_v1_server.py ws        the same
"""

import asyncio
import sys
from functools import partial

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.lowlevel import NotificationOptions
from mcp.server.websocket import websocket_server
from pydantic import BaseModel

import serving
import tools

server = FastMCP("python-v1-server")
tools.add_to(server, Context, ToolError)
# Clients believe what they are told when they connect, and the server has no setting for it.
lowlevel = server._mcp_server
lowlevel.create_initialization_options = partial(
    lowlevel.create_initialization_options, NotificationOptions(tools_changed=True)
)


class User(BaseModel):
    name: str


@server.tool()
async def question(context: Context) -> str:
    answer = await context.elicit("What is your name?", User)
    return f"Hello, {answer.data.name}!"


@server.tool()
async def register(name: str, context: Context) -> str:
    server.add_tool(lambda: f"this is {name}", name=name)
    await context.session.send_tool_list_changed()
    return f"{name} is there"


async def websocket(scope, receive, send):
    async with websocket_server(scope, receive, send) as (incoming, outgoing):
        await lowlevel.run(incoming, outgoing, lowlevel.create_initialization_options())


match sys.argv[1]:
    case "stdio":
        server.run("stdio")
    case "http":
        asyncio.run(serving.listen(server.streamable_http_app()))
    case "ws":
        asyncio.run(serving.listen(websocket, "ws"))
