"""A client on mcp 2: it speaks both eras, and by default finds out which."""

import asyncio
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult, ToolListChangedNotification

import calls
from calls import ERA, TARGET, WIRE, make_calls, report

MODES = {"modern": "2026-07-28", "legacy": "legacy", "either": "auto"}


class Peer(calls.Peer):
    def __init__(self, client, changed):
        self.client = client
        self.changed = changed

    async def call(self, tool, arguments, on_progress):
        return await self.client.call_tool(tool, arguments, progress_callback=on_progress)

    def failed(self, result):
        return result.is_error

    async def contents(self, uri):
        return (await self.client.read_resource(uri)).contents

    async def messages(self, prompt, arguments):
        return (await self.client.get_prompt(prompt, arguments)).messages

    async def tools(self):
        return (await self.client.list_tools()).tools

    @asynccontextmanager
    async def listen(self):
        if self.client.protocol_version != MODES["modern"]:
            yield self.changed.wait
            return
        async with self.client.listen(tools_list_changed=True) as changes:
            yield lambda: anext(changes)


async def answer(context, question):
    content = calls.name_of(question.message)
    return ElicitResult(action="accept" if content else "decline", content=content)


async def main():
    changed = asyncio.Event()

    async def hear(message):
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    target = StdioServerParameters(command=TARGET[0], args=TARGET[1:]) if WIRE == "stdio" else TARGET[0]
    async with Client(target, mode=MODES[ERA], elicitation_callback=answer, message_handler=hear) as client:
        report(revision=client.protocol_version)
        await make_calls(Peer(client, changed))


asyncio.run(main())
