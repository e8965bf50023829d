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

server = MCPServer("python-v2-server")
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


@server.tool()
def question(user: Annotated[User, Resolve(ask)]) -> str:
    return f"Hello, {user.name}!"


@server.tool()
async def hang(context: Context) -> None:
    await context.report_progress(1)
    await serving.hang()


@server.tool()
async def stopped() -> str:
    return await serving.stopped()


@server.tool()
async def register(name: str, context: Context) -> str:
    server.add_tool(lambda: f"this is {name}", name=name)
    await context.notify_tools_changed()
    if context.protocol_version != "2026-07-28":
        await context.session.send_tool_list_changed()
    return f"{name} is there"


@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.prompt("test_prompt_with_arguments")
def prompt(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    asyncio.run(serving.listen(server.streamable_http_app()))
