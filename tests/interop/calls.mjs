// What every client program here shares: the command line it is given, and the JSON lines it prints.
//
//     PROGRAM ERA CALLS http URL
//     PROGRAM ERA CALLS stdio COMMAND...
//
// ERA is modern, legacy or either, CALLS a JSON array of { tool, arguments }. README.md has the lines.

const [era, calls, wire, ...target] = process.argv.slice(2);

export { era, target, wire };

/** Prints one line of the report. */
export function report(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Makes every call and reports it; `call` answers with a tool's result and passes progress on. */
export async function makeCalls(call) {
    for (const { tool, arguments: args } of JSON.parse(calls)) {
        const progress = [];
        try {
            const result = await call({ name: tool, arguments: args }, (step) => progress.push(step.progress));
            const text = result.content.map((block) => block.text).join('');
            report({ tool, text, failed: result.isError === true, progress });
        } catch (error) {
            report({ tool, error: String(error) });
        }
    }
}

/** Ends the session of a transport and reports the status of what is sent in it afterwards. */
export async function endSession(transport) {
    const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': transport.sessionId,
    };
    await transport.terminateSession();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'afterwards', method: 'ping' });
    const { status } = await fetch(target[0], { method: 'POST', headers, body });
    report({ ended: status });
}
