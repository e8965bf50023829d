"""What every client program here shares: the command line it is given, and the JSON lines it prints.

    PROGRAM ERA CALLS http URL
    PROGRAM ERA CALLS stdio COMMAND...

ERA is modern, legacy or either, CALLS a JSON array of { tool, arguments }. README.md has the lines.
"""

import json
import sys

ERA, CALLS, WIRE, *TARGET = sys.argv[1:]


def report(**line):
    """Prints one line of the report."""
    print(json.dumps(line), flush=True)


async def make_calls(call, is_error):
    """Makes every call and reports it; `call` takes a tool, its arguments and whom to tell of progress."""
    for wanted in json.loads(CALLS):
        tool, steps = wanted["tool"], []

        async def on_progress(progress, total, message, steps=steps):
            steps.append(progress)

        try:
            result = await call(tool, wanted["arguments"], on_progress)
            text = "".join(block.text for block in result.content)
            report(tool=tool, text=text, failed=is_error(result), progress=steps)
        except Exception as error:
            report(tool=tool, error=repr(error))
