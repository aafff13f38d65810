"""grpcio as a server for our client. Prints its port, and what a handler learns when its caller has disconnected. Runs until it gets a signal."""

import json
import sys
import threading
from concurrent import futures

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from grpcio_text import Text

(certificate, key) = sys.argv[1:3]


def say(**what):
    print(json.dumps(what), flush=True)


def count(request, _context):
    for number in range(1, request.count + 1):
        yield Text(count=number)


def fail(_request, context):
    status = status_pb2.Status(code=5, message="nicht gefunden: ü")
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason="GONE", domain="example.org", metadata={"id": "7"}))
    status.details.append(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.NOT_FOUND, status.message)


def fail_later(_request, context):
    yield Text(count=1)
    context.abort(grpc.StatusCode.ABORTED, "enough")


def wait(request, context):
    gone = threading.Event()
    context.add_callback(gone.set)
    # For a call without a deadline, grpcio returns a time of centuries.
    seconds = context.time_remaining()
    say(waits=request.text, seconds=round(seconds) if seconds < 1e6 else None)
    gone.wait()
    say(gone=request.text)
    return Text()


def endless(request, context):
    gone = threading.Event()
    context.add_callback(gone.set)
    yield Text(count=1)
    gone.wait()
    say(gone=request.text)


def metadata(_request, context):
    given = dict(context.invocation_metadata())
    return Text(text=json.dumps({"x-test": given["x-test"], "authorization": given["authorization"], "x-bin": list(given["x-bin"])}))


def plain(handle):
    return grpc.unary_unary_rpc_method_handler(handle, request_deserializer=Text.FromString, response_serializer=Text.SerializeToString)


def streaming(handle):
    return grpc.unary_stream_rpc_method_handler(handle, request_deserializer=Text.FromString, response_serializer=Text.SerializeToString)


handlers = {
    "Say": plain(lambda request, _context: request),
    "Count": streaming(count),
    "Fail": plain(fail),
    "FailLater": streaming(fail_later),
    "Wait": plain(wait),
    "Open": streaming(endless),
    "Metadata": plain(metadata),
}
server = grpc.server(
    futures.ThreadPoolExecutor(max_workers=16),
    options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)],
    compression=grpc.Compression.Gzip,
)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
if certificate == "":
    port = server.add_insecure_port("127.0.0.1:0")
else:
    with open(key, "rb") as key_file, open(certificate, "rb") as certificate_file:
        credentials = grpc.ssl_server_credentials([(key_file.read(), certificate_file.read())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
server.start()
say(port=port)
server.wait_for_termination()
