"""Drives the door for editors with the official Python SDK of the Agent Client Protocol: sessions, streaming, cancellation, an old
session."""
import asyncio, re, sys

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import ResourceContentBlock

directory, command = sys.argv[1], sys.argv[2:]
called = asyncio.Event()


def shown(path):
    return path.replace(directory, "DIR").replace(directory.rsplit("/", 1)[0] + "/ns", "TREE")


class Editor:
    def on_connect(self, agent):
        pass

    async def session_update(self, session_id, update, **_):
        kind = update.session_update
        if kind.endswith("_chunk"):
            print(kind, repr(update.content.text))
        elif kind == "tool_call":
            print("call:", update.title, update.kind, update.status, [shown(at.path) for at in update.locations or []])
            called.set()
        elif kind == "tool_call_update":
            print("call is", update.status, [re.sub("job-[0-9a-f-]+", "JOB", part.content.text) for part in update.content or []])


async def say(agent, session, *blocks):
    blocks = [text_block(block) if isinstance(block, str) else block for block in blocks]
    answer = await asyncio.wait_for(agent.prompt(prompt=blocks, session_id=session), 60)
    print("->", answer.stop_reason)


async def main():
    async with spawn_agent_process(Editor(), command[0], *command[1:]) as (agent, process):
        hello = await agent.initialize(protocol_version=1)
        print(hello.protocol_version, hello.agent_info.name, hello.agent_capabilities.load_session)
        first = (await agent.new_session(cwd=directory, mcp_servers=[])).session_id
        note = ResourceContentBlock(type="resource_link", name="notes.txt", uri=f"file://{directory}/notes.txt")
        await say(agent, first, "What is in ", note)
        second = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        await say(agent, second, "Write it down")
        # A turn that waits is cancelled, and the next one is answered.
        called.clear()
        waiting = asyncio.create_task(say(agent, second, "Wait"))
        await asyncio.wait_for(called.wait(), 60)
        await agent.cancel(session_id=second)
        await waiting
        try:
            await say(agent, second, "Fail")
        except RequestError as error:
            print("refused:", error)
        sessions = (await agent.list_sessions(cwd=directory)).sessions
        print([session.title for session in sessions], [session.session_id == first for session in sessions])
    print("code", process.returncode)
    async with spawn_agent_process(Editor(), command[0], *command[1:]) as (agent, process):
        await agent.initialize(protocol_version=1)
        await agent.load_session(cwd=directory, session_id=first, mcp_servers=[])
        await say(agent, first, "And now?")
        try:
            await agent.load_session(cwd=directory, session_id="nothing", mcp_servers=[])
        except RequestError as error:
            print("refused:", error)


asyncio.run(main())
