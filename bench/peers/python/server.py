"""A server on the official Python SDK, written as its documentation shows it.

    server.py http       says `listening on URL` on stderr
    server.py stdio
    server.py version    prints the SDK's name and version

Calls are answered with JSON, the fastest that the SDK offers, on uvicorn with its fast parser and event loop. A legacy
client gets a session.
"""

import socket
import sys
from importlib.metadata import version

import uvicorn
from mcp.server import MCPServer

# The SDK tells of each request at INFO.
server = MCPServer("peer", log_level="ERROR")


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    """Add two integers"""
    return str(a + b)


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Say it again"""
    return text


def http():
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    app = server.streamable_http_app(json_response=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([listener])


match sys.argv[1:]:
    case ["http"]:
        http()
    case ["stdio"]:
        server.run("stdio")
    case ["version"]:
        print("mcp", version("mcp"))
    case _:
        sys.exit("usage: server.py http | stdio | version")
