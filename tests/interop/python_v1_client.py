"""A client on mcp 1: it speaks the legacy era only."""

import asyncio
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    ElicitResult,
    ServerNotification,
    ToolListChangedNotification,
)

import calls
from calls import TARGET, WIRE, make_calls, report


class Peer(calls.Peer):
    def __init__(self, session, changed):
        self.session = session
        self.changed = changed

    async def call(self, tool, arguments, on_progress):
        return await self.session.call_tool(tool, arguments, progress_callback=on_progress)

    def failed(self, result):
        return result.isError

    async def contents(self, uri):
        return (await self.session.read_resource(uri)).contents

    async def messages(self, prompt, arguments):
        return (await self.session.get_prompt(prompt, arguments)).messages

    async def tools(self):
        return (await self.session.list_tools()).tools

    @asynccontextmanager
    async def listen(self):
        yield self.changed.wait

    async def give_up(self, call):
        # The session leaves it to its user to tell the server, and keeps the ids to itself.
        params = CancelledNotificationParams(requestId=self.session._request_id - 1)
        await self.session.send_notification(ClientNotification(CancelledNotification(params=params)))
        call.cancel()


async def answer(context, question):
    content = calls.name_of(question.message)
    return ElicitResult(action="accept" if content else "decline", content=content)


def connect():
    if WIRE == "stdio":
        return stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:]))
    return websocket_client(TARGET[0]) if WIRE == "ws" else streamable_http_client(TARGET[0])


async def main():
    changed = asyncio.Event()

    async def hear(message):
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            changed.set()

    async with (
        connect() as (incoming, outgoing, *_),
        ClientSession(incoming, outgoing, elicitation_callback=answer, message_handler=hear) as session,
    ):
        report(revision=(await session.initialize()).protocolVersion)
        await make_calls(Peer(session, changed))


asyncio.run(main())
