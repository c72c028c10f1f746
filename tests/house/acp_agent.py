#!/usr/bin/env python3
"""A small agent that speaks the Agent Client Protocol, for tests: it does what the last line of a prompt says."""
import json, os, subprocess, sys, urllib.request

waiting, number = {}, 0


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(what, **fields):
    send(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": what, **fields}})


def say(text, what="agent_message_chunk"):
    update(what, content={"type": "text", "text": text})


def ask(method, **params):
    """A request to the client; other messages wait."""
    global number
    number += 1
    send(id=f"a{number}", method=method, params={"sessionId": "s1", **params})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("id") == f"a{number}" and "method" not in message:
            return message.get("result"), message.get("error")


def prompt(text):
    word, _, rest = text.splitlines()[-1].partition(" ")
    if word == "read":
        result, error = ask("fs/read_text_file", path=rest)
        say(result["content"] if result else f"{error['code']} {error['message']}")
    elif word == "write":
        path, _, content = rest.partition(" ")
        _, error = ask("fs/write_text_file", path=path, content=content + "\n")
        say("written" if error is None else f"{error['code']} {error['message']}")
    elif word == "shell":
        update("tool_call", toolCallId="c1", title=rest, kind="execute", status="in_progress")
        done = subprocess.run(rest, shell=True, capture_output=True, text=True)
        out = done.stdout + done.stderr
        status = "completed" if done.returncode == 0 else "failed"
        update("tool_call_update", toolCallId="c1", status=status, content=[{"type": "content", "content": {"type": "text", "text": out}}])
        say(out)
    elif word == "may":
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]
        result, _ = ask("session/request_permission", toolCall={"toolCallId": "c2", "title": rest, "kind": "execute"}, options=options)
        say(json.dumps(result["outcome"]))
    elif word == "model":
        body = json.dumps({"model": os.environ["OPENAI_MODEL"] if "OPENAI_MODEL" in os.environ else "any", "messages": [{"role": "user", "content": rest}]})
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode(),
                                         {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
        with urllib.request.urlopen(request) as answer:
            say(json.load(answer)["choices"][0]["message"]["content"])
    elif word == "terminal":
        _, error = ask("terminal/create", command="id")
        say(f"{error['code']} {error['message']}")
    elif word == "wait":
        update("tool_call", toolCallId="c3", title="waiting", kind="other", status="in_progress")
        while json.loads(sys.stdin.readline()).get("method") != "session/cancel":
            pass
        return "cancelled"
    elif word == "deaf":
        while True:
            sys.stdin.readline()
    elif word == "die":
        print("I have had enough", file=sys.stderr, flush=True)
        sys.exit(3)
    elif word == "flood":
        sys.stdout.write("x" * (9 << 20) + "\n")
    elif word == "all":
        say(text)
    else:
        say("hm", "agent_thought_chunk")
        say("npm warn is no message\n" if word == "noise" else f"You said: {text.splitlines()[-1]}")
    return "end_turn"


print("a stray word", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        version = 2 if "--new" in sys.argv else 1
        send(id=id, result={"protocolVersion": version, "agentCapabilities": {}, "authMethods": []})
    elif method == "session/new":
        os.chdir(message["params"]["cwd"])
        send(id=id, result={"sessionId": "s1"})
        send(id="v1", method="_vendor/hello", params={})
    elif method == "session/prompt":
        text = "".join(block["text"] for block in message["params"]["prompt"])
        send(id=id, result={"stopReason": prompt(text)})
