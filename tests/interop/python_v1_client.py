"""A client on mcp 1: it speaks the legacy era only."""

import asyncio

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from calls import TARGET, WIRE, make_calls, report


def connect():
    if WIRE == "stdio":
        return stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:]))
    return streamable_http_client(TARGET[0])


async def main():
    async with connect() as (incoming, outgoing, *_), ClientSession(incoming, outgoing) as session:
        report(revision=(await session.initialize()).protocolVersion)

        def call(tool, arguments, on_progress):
            return session.call_tool(tool, arguments, progress_callback=on_progress)

        await make_calls(call, lambda result: result.isError)


asyncio.run(main())
