"""A client on mcp 2: it speaks both eras, and by default finds out which."""

import asyncio

from mcp import Client, StdioServerParameters

from calls import ERA, TARGET, WIRE, make_calls, report

MODES = {"modern": "2026-07-28", "legacy": "legacy", "either": "auto"}


async def main():
    target = StdioServerParameters(command=TARGET[0], args=TARGET[1:]) if WIRE == "stdio" else TARGET[0]
    async with Client(target, mode=MODES[ERA]) as client:
        report(revision=client.protocol_version)

        def call(tool, arguments, on_progress):
            return client.call_tool(tool, arguments, progress_callback=on_progress)

        await make_calls(call, lambda result: result.is_error)


asyncio.run(main())
