#!/usr/bin/env python3
"""A model on loopback that calls the tool file_read of an MCP server once, in three languages, and then repeats what it got.

usage: mcp_model.py   (prints its port)
"""
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = {"path": "/agents/self/memory/items/ford/content"}


def named(tools):
    """The name of the tool as the client calls it, and its namespace, if it has one."""
    for tool in tools or []:
        for inner in [tool, *tool.get("tools", []), *tool.get("functionDeclarations", [])]:
            name = inner.get("name", "")
            if name.endswith("file_read"):
                return name, tool.get("name") if tool.get("type") == "namespace" else None
    return None, None


def result(text):
    """What the tool gave, if it was called."""
    return "PONG " + text.split("FORD:")[1][:11] if "FORD:" in text else None


def messages(body):
    name, _ = named(body.get("tools"))
    got = result(json.dumps(body["messages"]))
    begin = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "content": [],
             "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 0}}
    if name and not got:
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        delta, reason = {"type": "input_json_delta", "partial_json": json.dumps(PATH)}, "tool_use"
    else:
        block, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": got or "no tool"}, "end_turn"
    return [
        {"type": "message_start", "message": begin},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def responses(body):
    name, space = named(body.get("tools"))
    got = result(json.dumps(body.get("input")))
    if name and not got:
        item = {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1", "name": name, "arguments": json.dumps(PATH)}
        if space:
            item["namespace"] = space
    else:
        text = {"type": "output_text", "text": got or "no tool", "annotations": []}
        item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    return [
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**base, "status": "completed", "output": [item], "usage": usage}},
    ]


def gemini(body):
    name, _ = named(body.get("tools"))
    got = result(json.dumps(body.get("contents")))
    part = {"functionCall": {"name": name, "args": PATH}} if name and not got else {"text": got or "no tool"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return [{"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}]


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        path = self.path.split("?")[0]
        if path.endswith("/messages"):
            events = messages(body)
        elif path.endswith("/responses"):
            events = responses(body)
        elif "treamGenerateContent" in path:
            events = gemini(body)
        else:
            return self.reply(404, "application/json", "{}")
        lines = [(f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        self.reply(200, "text/event-stream", "".join(lines))

    def reply(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
