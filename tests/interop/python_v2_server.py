"""A server on mcp 2, which speaks both eras.

    python_v2_server.py stdio
    python_v2_server.py http      says `listening on URL` on stderr
"""

import asyncio
import sys
from functools import partial
from typing import Annotated

from mcp.server import MCPServer, NotificationOptions
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

import serving
import tools

server = MCPServer("python-v2-server")
tools.add_to(server, Context, ToolError)
# Legacy clients believe what they are told when they connect, and the server has no setting for it.
lowlevel = server._lowlevel_server
lowlevel.create_initialization_options = partial(
    lowlevel.create_initialization_options, NotificationOptions(tools_changed=True)
)


class User(BaseModel):
    name: str


def ask() -> Elicit[User]:
    return Elicit("What is your name?", User)


@server.tool()
def question(user: Annotated[User, Resolve(ask)]) -> str:
    return f"Hello, {user.name}!"


@server.tool()
async def register(name: str, context: Context) -> str:
    server.add_tool(lambda: f"this is {name}", name=name)
    await context.notify_tools_changed()
    if context.protocol_version != "2026-07-28":
        await context.session.send_tool_list_changed()
    return f"{name} is there"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    asyncio.run(serving.listen(server.streamable_http_app()))
