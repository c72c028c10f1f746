#!/usr/bin/env python3
"""A provider on loopback that speaks all four languages of agent programs, and answers each request with PONG.

usage: upstream.py COUNTS   (prints its port; COUNTS gets one line per request)
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNTS = open(sys.argv[1], "a", buffering=1)
USAGE = {"input_tokens": 10, "output_tokens": 5}


def messages(model, stream):
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    if not stream:
        return {**whole, "content": [{"type": "text", "text": "PONG"}], "stop_reason": "end_turn", "usage": USAGE}
    start = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 0}}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "PONG"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]


def chat(model, stream):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": "c1", "created": 1, "model": model}
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": "PONG"}, "finish_reason": "stop"}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    piece = {**base, "object": "chat.completion.chunk"}
    first = {"index": 0, "delta": {"role": "assistant", "content": "PONG"}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [{**piece, "choices": [first]}, {**piece, "choices": [last]}, {**piece, "choices": [], "usage": usage}, None]


def responses(model, stream):
    text = {"type": "output_text", "text": "PONG", "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [text]}
    usage = {**USAGE, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": model}
    done = {**base, "status": "completed", "output": [item], "usage": usage}
    if not stream:
        return done
    begun = {**base, "status": "in_progress", "output": [], "usage": None}
    place = {"output_index": 0}
    return [
        {"type": "response.created", "sequence_number": 0, "response": begun},
        {"type": "response.output_item.added", "sequence_number": 1, **place, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.output_text.delta", "sequence_number": 2, **place, "item_id": "msg_1", "content_index": 0, "delta": "PONG"},
        {"type": "response.output_item.done", "sequence_number": 3, **place, "item": item},
        {"type": "response.completed", "sequence_number": 4, "response": done},
    ]


def gemini(model, stream):
    content = {"role": "model", "parts": [{"text": "PONG"}]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage, "modelVersion": model}
    return [whole] if stream else whole


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "{}")
        path = self.path.split("?")[0]
        key = self.headers.get("x-api-key") or self.headers.get("authorization") or self.headers.get("x-goog-api-key")
        COUNTS.write(json.dumps({"path": path, "model": body.get("model"), "key": key}) + "\n")
        model, stream = body.get("model", "m"), bool(body.get("stream"))
        if path.endswith("/messages"):
            answer = messages(model, stream)
        elif path.endswith("/chat/completions"):
            answer = chat(model, stream)
        elif path.endswith("/responses"):
            answer = responses(model, stream)
        elif "enerateContent" in path:
            answer = gemini("x", "stream" in path)
        elif path.endswith("/count_tokens"):
            answer = {"input_tokens": 7}
        else:
            return self.reply(404, "application/json", b'{"error":{"message":"not served"}}')
        if isinstance(answer, dict):
            return self.reply(200, "application/json", json.dumps(answer).encode())
        text = ""
        for event in answer:
            if event is None:
                text += "data: [DONE]\n\n"
                continue
            name = f"event: {event['type']}\n" if "type" in event else ""
            text += f"{name}data: {json.dumps(event)}\n\n"
        return self.reply(200, "text/event-stream", text.encode())

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_address[1], flush=True)
server.serve_forever()
