"""A server on fastmcp, which speaks both eras.

    fastmcp_server.py stdio
    fastmcp_server.py http      says `listening on URL` on stderr
"""

import asyncio
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ToolListChangedNotification
from pydantic import BaseModel

import serving

QUESTION = "What is your name?"

server = FastMCP("fastmcp-server")


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
async def question(context: Context) -> str | InputRequiredResult:
    """In the modern era it is called again with the answer."""
    answer = (context.input_responses or {}).get("user")
    if answer is not None:
        return f"Hello, {answer.content['name']}!"
    if context.request_context.protocol_version == "2026-07-28":
        form = ElicitRequestFormParams(message=QUESTION, requested_schema=User.model_json_schema())
        return InputRequiredResult(input_requests={"user": ElicitRequest(params=form)})
    return f"Hello, {(await context.elicit(QUESTION, User)).data.name}!"


@server.tool()
async def hang(context: Context) -> None:
    await context.report_progress(1)
    await serving.hang()


@server.tool()
async def stopped() -> str:
    return await serving.stopped()


@server.tool()
async def register(name: str, context: Context) -> str:
    server.add_tool(Tool.from_function(lambda: f"this is {name}", name=name))
    await context.send_notification(ToolListChangedNotification())
    return f"{name} is there"


@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.prompt("test_prompt_with_arguments")
def prompt(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


if sys.argv[1] == "stdio":
    server.run("stdio", show_banner=False)
else:
    asyncio.run(serving.listen(server.http_app()))
