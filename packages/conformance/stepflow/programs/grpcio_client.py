"""grpcio as a client of our server: makes one call after the other and prints each outcome as a line of JSON."""

import json
import sys
import threading

import grpc
from google.rpc import error_details_pb2, status_pb2

from grpcio_text import Text, path

target, token, certificate = sys.argv[1:4]
BEARER = (("authorization", f"Bearer {token}"),)
TIMEOUT = 30
LARGE = 15_000_000


def say(**result):
    print(json.dumps(result), flush=True)


def unary(channel, method):
    return channel.unary_unary(path(method), Text.SerializeToString, Text.FromString)


def stream(channel, method):
    return channel.unary_stream(path(method), Text.SerializeToString, Text.FromString)


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    return None


def open_channel():
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    # More often than any client does by default.
    pings = [("grpc.keepalive_time_ms", 1_000), ("grpc.http2.max_pings_without_data", 0)]
    if certificate == "":
        return grpc.insecure_channel(target, options=unlimited + pings)
    with open(certificate, "rb") as file:
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(file.read()), options=unlimited + pings)


def calls(channel):
    echo = unary(channel, "Say")
    sent = Text(text="hällo 🚢", count=7, blob=b"\x00\xff", numbers=[1, 300, 70000], labels={"a": "b"}, left="side")
    sent.value.struct_value["list"] = [1, "two", None, {"three": 3.5}]
    sent.at.FromMilliseconds(1_700_000_000_123)
    say(say=echo(sent, timeout=TIMEOUT, metadata=BEARER) == sent)

    counted = [one.count for one in stream(channel, "Count")(Text(count=1000), timeout=TIMEOUT, metadata=BEARER)]
    say(stream=[len(counted), counted[0], counted[-1]])

    error = failure(lambda: unary(channel, "Fail")(Text(), timeout=TIMEOUT, metadata=BEARER))
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    status.details[0].Unpack(info)
    say(fail=[error.code().value[0], error.details(), status.code, info.reason, dict(info.metadata)])

    error = failure(lambda: list(stream(channel, "FailLater")(Text(), timeout=TIMEOUT, metadata=BEARER)))
    say(fail_later=[error.code().value[0], error.details()])

    error = failure(lambda: unary(channel, "Wait")(Text(text="deadline"), timeout=0.2, metadata=BEARER))
    say(deadline=error.code().value[0])

    future = unary(channel, "Wait").future(Text(text="cancel"), timeout=TIMEOUT, metadata=BEARER)
    # The response comes when the server has received the other call.
    unary(channel, "Begun")(Text(), timeout=TIMEOUT, metadata=BEARER)
    future.cancel()
    say(cancelled=future.cancelled())

    say(unknown=failure(lambda: unary(channel, "Nothing")(Text(), timeout=TIMEOUT, metadata=BEARER)).code().value[0])
    say(no_token=failure(lambda: echo(Text(), timeout=TIMEOUT)).code().value[0])
    packed = echo(Text(text="x" * 10_000), timeout=TIMEOUT, metadata=BEARER, compression=grpc.Compression.Gzip)
    say(gzip=len(packed.text))
    say(deflate=failure(lambda: echo(Text(text="x" * 10_000), timeout=TIMEOUT, metadata=BEARER, compression=grpc.Compression.Deflate)).code().value[0])
    say(large=len(echo(Text(blob=bytes(LARGE)), timeout=TIMEOUT, metadata=BEARER).blob))
    error = failure(lambda: echo(Text(blob=bytes(80_000_000)), timeout=TIMEOUT, metadata=BEARER))
    say(too_large=error.code().value[0])
    say(metadata=unary(channel, "Metadata")(Text(), timeout=TIMEOUT, metadata=BEARER + (("x-test", "abc"), ("x-bin", b"\x01\x02"))).text)

    results = []
    threads = [threading.Thread(target=lambda n=n: results.append(echo(Text(count=n), timeout=TIMEOUT, metadata=BEARER).count)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(parallel=sorted(results) == list(range(50)))


def restart(channel):
    """A stream that ends because the server closes, then a call that reaches the next server."""
    reading = stream(channel, "Open")(Text(), metadata=BEARER)
    reading.initial_metadata()
    say(open=True)
    say(closed=failure(lambda: next(reading)).code().value[0])
    answer = unary(channel, "Say")(Text(text="again"), timeout=TIMEOUT, metadata=BEARER, wait_for_ready=True)
    say(again=answer.text)


with open_channel() as channel:
    {"calls": calls, "restart": restart}[sys.argv[4]](channel)
