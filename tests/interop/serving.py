"""What the servers in Python share: a free port, and tools that depend on one another."""

import asyncio
import socket
import sys

import uvicorn


async def listen(app, scheme="http"):
    """Serves on a free port and says which."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on {scheme}://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve([listener])


hanging = 0
ended = asyncio.Event()


async def hang():
    """Waits until the call is cancelled."""
    global hanging
    hanging += 1
    try:
        await asyncio.Event().wait()
    finally:
        hanging -= 1
        ended.set()


async def stopped():
    """Waits until nothing hangs."""
    while hanging > 0:
        ended.clear()
        await ended.wait()
    return "stopped"
