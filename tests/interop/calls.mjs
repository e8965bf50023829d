// What every client program here shares: the command line it is given, and the JSON lines it prints.
//
//     PROGRAM ERA CALLS http URL
//     PROGRAM ERA CALLS stdio COMMAND...
//     PROGRAM ERA CALLS ws URL
//
// README.md says what these are, and has the lines.

const [era, calls, wire, ...target] = process.argv.slice(2);

export { era, target, wire };

/** Prints one line of the report. */
export function report(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What the user says when a server asks. */
export function answer({ message }) {
    return message === 'What is your name?' ? { action: 'accept', content: { name: 'Ada' } } : { action: 'decline' };
}

/**
 * Makes every call and reports it. A peer has the methods of the SDK's client, and `hearChange`, which resolves, once the
 * server tells of changes, to `{ heard, close }`: a promise of a change of the tools, and what ends the listening.
 */
export async function makeCalls(peer) {
    for (const wanted of JSON.parse(calls)) {
        const kind = Object.keys(KINDS).find((kind) => kind in wanted);
        const about = { [kind]: wanted[kind] };
        try {
            report({ ...about, ...(await KINDS[kind](peer, wanted)) });
        } catch (error) {
            report({ ...about, error: String(error) });
        }
    }
}

const KINDS = {
    async tool(peer, { tool, arguments: args }) {
        const progress = [];
        const onprogress = (step) => progress.push(step.progress);
        const result = await peer.callTool({ name: tool, arguments: args }, { onprogress });
        return { text: textOf(result.content), failed: result.isError === true, progress };
    },
    async resource(peer, { resource }) {
        return { text: textOf((await peer.readResource({ uri: resource })).contents) };
    },
    async prompt(peer, { prompt, arguments: args }) {
        const { messages } = await peer.getPrompt({ name: prompt, arguments: args });
        return { text: textOf(messages.map(({ content }) => content)) };
    },
    async question(peer, { question }) {
        return { text: textOf((await peer.callTool({ name: question, arguments: {} })).content) };
    },
    async cancel(peer, { cancel, then }) {
        const given = new AbortController();
        const options = { signal: given.signal, onprogress: () => given.abort('enough') };
        const ended = await peer.callTool({ name: cancel, arguments: {} }, options).catch((error) => error);
        if (!given.signal.aborted) throw ended;
        return { text: textOf((await peer.callTool({ name: then, arguments: {} })).content) };
    },
    async change(peer, { change, arguments: args }) {
        const before = await namesOf(peer);
        const { heard, close } = await peer.hearChange();
        const { content, isError } = await peer.callTool({ name: change, arguments: args });
        if (isError) throw new Error(textOf(content));
        await heard;
        await close?.();
        return { text: (await namesOf(peer)).filter((name) => !before.includes(name)).join(' ') };
    },
};

function textOf(blocks) {
    return blocks.map((block) => block.text).join('');
}

async function namesOf(peer) {
    return (await peer.listTools()).tools.map((tool) => tool.name);
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
