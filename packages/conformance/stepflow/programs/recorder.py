"""A proxy between a worker and an orchestrator that use the queue protocol. Prints every message as a line of JSON.

Messages are read with the SDK's own schema, which does not depend on our code. Ids and times are replaced by fixed ones, and the entries of
maps are sorted. Everything else must be the same when it is written again, byte for byte; otherwise the recorder reports it.
"""
import asyncio
import json
import re
import sys
import traceback

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from stepflow_py.proto import blobs_pb2, orchestrator_pb2, tasks_pb2

SCHEMA = {
    "/stepflow.v1.TasksService/PullTasks": (tasks_pb2.PullTasksRequest, tasks_pb2.TaskAssignment),
    "/stepflow.v1.OrchestratorService/CompleteTask": (orchestrator_pb2.CompleteTaskRequest, orchestrator_pb2.CompleteTaskResponse),
    "/stepflow.v1.OrchestratorService/TaskHeartbeat": (orchestrator_pb2.TaskHeartbeatRequest, orchestrator_pb2.TaskHeartbeatResponse),
    "/stepflow.v1.OrchestratorService/SubmitRun": (orchestrator_pb2.OrchestratorSubmitRunRequest, orchestrator_pb2.OrchestratorRunStatus),
    "/stepflow.v1.OrchestratorService/GetRun": (orchestrator_pb2.OrchestratorGetRunRequest, orchestrator_pb2.OrchestratorRunStatus),
    "/stepflow.v1.BlobService/PutBlob": (blobs_pb2.PutBlobRequest, blobs_pb2.PutBlobResponse),
    "/stepflow.v1.BlobService/GetBlob": (blobs_pb2.GetBlobRequest, blobs_pb2.GetBlobResponse),
}

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TRACE = re.compile(r"\A[0-9a-f]{32}\Z")
SPAN = re.compile(r"\A[0-9a-f]{16}\Z")
ids: dict[str, str] = {}


def fixed_id(match: re.Match) -> str:
    return ids.setdefault(match[0], f"00000000-0000-7000-8000-{len(ids) + 1:012}")


def masked_text(name: str, text: str) -> str:
    if name == "trace_id" and TRACE.match(text):
        return "0123456789abcdef" * 2
    if name == "span_id" and SPAN.match(text):
        return "0123456789abcdef"
    if name == "traceback":
        return "(traceback)"
    # The number of requests for components differs from run to run.
    text = re.sub(r"\Adiscovery-\d+\Z", "discovery-0", text)
    return UUID.sub(fixed_id, text)


def mask(message: Message, name: str = "") -> None:
    if isinstance(message, Timestamp):
        message.seconds, message.nanos = 1_794_700_000, 123_000_000
        return
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in value:
                if isinstance(value[key], Message):
                    mask(value[key], key)
        elif field.message_type is not None:
            for one in value if field.label == field.LABEL_REPEATED else [value]:
                mask(one, name)
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, masked_text(name or field.name, value))


def times_in_milliseconds(value):
    """In JSON, times are texts; in our tables, they are milliseconds."""
    if isinstance(value, dict):
        return {k: 1_794_700_000_123 if k in ("createdAt", "completedAt") else times_in_milliseconds(v) for k, v in value.items()}
    if isinstance(value, list):
        return [times_in_milliseconds(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def note(method: str, direction: str, raw: bytes) -> None:
    try:
        print(json.dumps(recorded(method, direction, raw), ensure_ascii=False, sort_keys=True), flush=True)
    except Exception:
        # The library does not print this error, and the call would wait forever.
        traceback.print_exc()
        raise


def recorded(method: str, direction: str, raw: bytes) -> dict:
    message = SCHEMA[method][0 if direction == "request" else 1]()
    message.ParseFromString(raw)
    if len(message.SerializeToString()) != len(raw):
        raise ValueError(f"{method}: {raw.hex()} is not how the schema writes it")
    mask(message)
    said = times_in_milliseconds(MessageToDict(message, use_integers_for_enums=True))
    return {"method": method, "direction": direction, "message": said, "hex": message.SerializeToString(deterministic=True).hex()}


class Forwarder(grpc.GenericRpcHandler):
    def __init__(self, channel: grpc.aio.Channel):
        self.channel = channel

    def service(self, details):
        method = details.method

        async def stream(request, _context):
            note(method, "request", request)
            async for response in self.channel.unary_stream(method)(request):
                note(method, "response", response)
                yield response

        async def unary(request, context):
            note(method, "request", request)
            try:
                response = await self.channel.unary_unary(method)(request)
            except grpc.aio.AioRpcError as error:
                await context.abort(error.code(), error.details())
            note(method, "response", response)
            return response

        if method.endswith("/PullTasks"):
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)


async def main(upstream: str, port: str) -> None:
    server = grpc.aio.server()
    server.add_insecure_port(f"127.0.0.1:{port}")
    channel = grpc.aio.insecure_channel(upstream)
    server.add_generic_rpc_handlers((Forwarder(channel),))
    await server.start()
    print("recording", flush=True)
    await server.wait_for_termination()


asyncio.run(main(*sys.argv[1:]))
