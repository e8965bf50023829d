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

server = FastMCP("python-v1-server")
# Clients believe what they are told when they connect, and the server has no setting for it.
lowlevel = server._mcp_server
lowlevel.create_initialization_options = partial(
    lowlevel.create_initialization_options, NotificationOptions(tools_changed=True)
)


class User(BaseModel):
    name: str


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
async def question(context: Context) -> str:
    answer = await context.elicit("What is your name?", User)
    return f"Hello, {answer.data.name}!"


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
    await context.session.send_tool_list_changed()
    return f"{name} is there"


@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.prompt("test_prompt_with_arguments")
def prompt(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


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
