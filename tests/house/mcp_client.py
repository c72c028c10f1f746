"""Drives the door for MCP clients with the official Python SDK, in one of its modes: tools, refusals, waits, cancellation,
subscriptions. The door is a command, or a URL with the token in TOKEN."""
import asyncio, os, sys

from mcp import Client, StdioServerParameters

mode, command = sys.argv[1], sys.argv[2:]
updated = asyncio.Event()


async def heard(message):
    if "resources/updated" in str(getattr(getattr(message, "root", message), "method", "")):
        updated.set()


def said(result):
    words = "".join(getattr(block, "text", "") for block in result.content)
    return ("refused: " if result.is_error else "") + words


async def read(client, path, **more):
    return said(await client.call_tool("file_read", {"path": path, **more}))


async def write(client, path, content):
    return said(await client.call_tool("file_write", {"path": path, "content": content}))


async def main():
    if command[0].startswith("http"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client
        headers = {"authorization": "Bearer " + os.environ["TOKEN"]}
        server = streamable_http_client(command[0], http_client=httpx2.AsyncClient(headers=headers, timeout=None))
    else:
        server = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(server, mode=mode, message_handler=heard) as client:
        print(client.protocol_version, [tool.name for tool in (await client.list_tools()).tools])
        print([resource.uri for resource in (await client.list_resources()).resources])
        print((await read(client, "/AGENTS.md")).splitlines()[0])
        print(said(await client.call_tool("file_list", {"path": "/agents"})))
        me = "/agents/self/"
        print("job_id" in await write(client, me + "memory/control/create.json", '{"kind":"note","name":"ford","content":"At the willow."}'))
        print(await read(client, me + "memory/items/ford/content"))
        print(await write(client, me + "memory/control/create.json", '{"kind":"note"}'))
        print(await read(client, me + "nothing"))
        print(said(await client.call_tool("file_fly", {})))
        print(await read(client, me + "events/sources/user/go.json", wait_until_ready=False))
        # A read that waits tells of it, and others go on meanwhile.
        told = asyncio.Event()
        async def progress(step, total, message):
            print("progress:", message) if not told.is_set() else None
            told.set()
        path = me + "events/sources/user/go.json"
        waiting = asyncio.create_task(client.call_tool("file_read", {"path": path}, progress_callback=progress))
        await asyncio.wait_for(told.wait(), 60)
        await write(client, me + "events/control/signal.json", '{"event_type":"user","parameter":"go","payload":{"to":"the ford"}}')
        print('"to":"the ford"' in said(await asyncio.wait_for(waiting, 60)))
        # A read that is cancelled, and the next one is answered.
        waiting = asyncio.create_task(client.call_tool("file_read", {"path": me + "events/sources/user/never.json"}))
        await asyncio.sleep(0.5)
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            print("cancelled")
        print(await read(client, me + "memory/items/ford/content"))
        # A long text comes in pages.
        await write(client, me + "memory/control/create.json", '{"kind":"note","name":"long","content":"' + "ä" * 30000 + '"}')
        page = await read(client, me + "memory/items/long/content")
        rest = await read(client, me + "memory/items/long/content", offset=int(page.split("offset ")[1].rstrip("]")))
        print(page.count("ä") + rest.count("ä"), page.endswith("]"), rest.endswith("ä"))
        # Resources, and a subscription to one.
        uri = "acheron:/agents/self/memory/items/ford/content"
        print((await client.read_resource(uri)).contents[0].text)
        if client.protocol_version < "2026":
            await client.subscribe_resource(uri)
            await write(client, me + "memory/items/ford/content", "At the oak.")
            await asyncio.wait_for(updated.wait(), 60)
        else:
            async with client.listen(resource_subscriptions=[uri]) as events:
                # The watch begins after the acknowledgement.
                async def changes():
                    while True:
                        seen.append(1)
                        await write(client, me + "memory/items/ford/content", f"At the oak {len(seen)}.")
                        await asyncio.sleep(1)
                seen = []
                changing = asyncio.create_task(changes())
                async for event in events:
                    print("event:", event.uri)
                    break
                changing.cancel()
        print("updated")


asyncio.run(asyncio.wait_for(main(), 240))
