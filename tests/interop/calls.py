"""What every client program here shares: the command line it is given, and the JSON lines it prints.

    PROGRAM ERA CALLS http URL
    PROGRAM ERA CALLS stdio COMMAND...
    PROGRAM ERA CALLS ws URL

README.md says what these are, and has the lines.
"""

import asyncio
import json
import sys

ERA, CALLS, WIRE, *TARGET = sys.argv[1:]


def report(**line):
    """Prints one line of the report."""
    print(json.dumps(line), flush=True)


def name_of(question):
    """What the user's form says; None where the question is another than expected."""
    return {"name": "Ada"} if question == "What is your name?" else None


def text_of(blocks):
    return "".join(block.text for block in blocks)


async def make_calls(peer):
    """Makes every call and reports it. `Peer` says what a peer has."""
    for wanted in json.loads(CALLS):
        kind = next(kind for kind in KINDS if kind in wanted)
        about = {kind: wanted[kind]}
        try:
            report(**about, **await KINDS[kind](peer, **wanted))
        except Exception as error:
            report(**about, error=repr(error))


class Peer:
    """What a client program has to say of its package; what is missing is not called."""

    async def call(self, tool, arguments, on_progress):
        """The result of a tool; `on_progress` is told of each step."""

    def failed(self, result):
        """Whether it is the result of a failure."""

    async def contents(self, uri):
        """The contents of a resource."""

    async def messages(self, prompt, arguments):
        """The messages of a prompt."""

    async def tools(self):
        """The tools that are listed."""

    def listen(self):
        """A context in which the server tells of changes; it is entered with what waits for one of the tools."""

    async def give_up(self, call):
        """Gives up the task of a call."""
        call.cancel()


async def make_call(peer, tool, arguments):
    steps = []

    async def on_progress(progress, total, message):
        steps.append(progress)

    result = await peer.call(tool, arguments, on_progress)
    return {"text": text_of(result.content), "failed": peer.failed(result), "progress": steps}


async def read(peer, resource):
    return {"text": text_of(await peer.contents(resource))}


async def get(peer, prompt, arguments):
    return {"text": text_of(message.content for message in await peer.messages(prompt, arguments))}


async def cancel(peer, cancel, then):
    runs = asyncio.Event()

    async def on_progress(progress, total, message):
        runs.set()

    call = asyncio.create_task(peer.call(cancel, {}, on_progress))
    waiting = asyncio.create_task(runs.wait())
    await asyncio.wait([call, waiting], return_when=asyncio.FIRST_COMPLETED)
    if call.done():
        raise RuntimeError(f"{cancel} has ended: {call.result()}")
    await peer.give_up(call)
    await asyncio.wait([call])
    return {"text": (await make_call(peer, then, {}))["text"]}


async def change(peer, change, arguments):
    before = {tool.name for tool in await peer.tools()}
    async with peer.listen() as heard:
        result = await make_call(peer, change, arguments)
        if result["failed"]:
            raise RuntimeError(result["text"])
        await heard()
    return {"text": " ".join(tool.name for tool in await peer.tools() if tool.name not in before)}


KINDS = {
    "tool": make_call,
    "resource": read,
    "prompt": get,
    "question": lambda peer, question: make_call(peer, question, {}),
    "cancel": cancel,
    "change": change,
}
