"""What the servers on Python packages have in common, whose decorators are alike."""

import serving


def add_to(server, Context, ToolError):
    """Adds it, with the context and the error of the server's package."""

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    def fail(message: str) -> None:
        raise ToolError(message)

    @server.tool()
    async def count(n: int, context: Context) -> int:
        for step in range(1, n + 1):
            await context.report_progress(step, n)
        return n

    @server.tool()
    async def hang(context: Context) -> None:
        await context.report_progress(1)
        await serving.hang()

    @server.tool()
    async def stopped() -> str:
        return await serving.stopped()

    @server.resource("test://static-text")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.prompt("test_prompt_with_arguments")
    def prompt(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
