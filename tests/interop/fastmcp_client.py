"""A client on fastmcp: it speaks both eras, and by default finds out which."""

import asyncio
from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from mcp.client.subscriptions import listen

import calls
from calls import ERA, TARGET, WIRE, make_calls, report

MODES = {"modern": "2026-07-28", "legacy": "legacy", "either": "auto"}


class Changes(MessageHandler):
    def __init__(self):
        self.heard = asyncio.Event()

    async def on_tool_list_changed(self, message):
        self.heard.set()


class Peer(calls.Peer):
    def __init__(self, client, changes):
        self.client = client
        self.changes = changes

    async def call(self, tool, arguments, on_progress):
        return await self.client.call_tool_mcp(tool, arguments, progress_handler=on_progress)

    def failed(self, result):
        return result.is_error

    async def contents(self, uri):
        return await self.client.read_resource(uri)

    async def messages(self, prompt, arguments):
        return (await self.client.get_prompt(prompt, arguments)).messages

    async def tools(self):
        return await self.client.list_tools()

    @asynccontextmanager
    async def listen(self):
        if self.client.protocol_version != MODES["modern"]:
            yield self.changes.heard.wait
            return
        # The client has no word for it, but the session below it is that of mcp.
        async with listen(self.client.session, tools_list_changed=True) as changes:
            yield lambda: anext(changes)


async def answer(message, response_type, params, context):
    content = calls.name_of(message)
    return ElicitResult(action="accept" if content else "decline", content=content)


async def main():
    changes = Changes()
    target = StdioTransport(TARGET[0], TARGET[1:]) if WIRE == "stdio" else TARGET[0]
    async with Client(target, mode=MODES[ERA], elicitation_handler=answer, message_handler=changes) as client:
        report(revision=client.protocol_version)
        await make_calls(Peer(client, changes))


asyncio.run(main())
