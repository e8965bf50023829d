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
import tools

QUESTION = "What is your name?"

server = FastMCP("fastmcp-server")
tools.add_to(server, Context, ToolError)


class User(BaseModel):
    name: str


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
async def register(name: str, context: Context) -> str:
    server.add_tool(Tool.from_function(lambda: f"this is {name}", name=name))
    await context.send_notification(ToolListChangedNotification())
    return f"{name} is there"


if sys.argv[1] == "stdio":
    server.run("stdio", show_banner=False)
else:
    asyncio.run(serving.listen(server.http_app()))
