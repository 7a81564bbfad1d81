"""The service of `examples/echo.proto` by grpcio, with server reflection and without generated
code: descriptors are made here, and methods are handled by generic handlers.

Usage: grpc_server.py PORT [--no-reflection] [--alpha]. Prints `listening on HOST:PORT`; on SIGTERM
its books as a line of JSON: calls, messages, and statuses by their names.
"""

import json
import signal
import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
PACKAGE = "echo.v1"


def file(name, package, messages, service=None, methods=()):
    made = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto3")
    for message, fields in messages:
        described = made.message_type.add(name=message)
        for number, (field, kind) in enumerate(fields, 1):
            described.field.add(
                name=field, number=number, type=kind, label=FIELD.LABEL_OPTIONAL
            )
    if service:
        described = made.service.add(name=service)
        for method, takes, gives, streams_in, streams_out in methods:
            described.method.add(
                name=method,
                input_type=f".{package}.{takes}",
                output_type=f".{package}.{gives}",
                client_streaming=streams_in,
                server_streaming=streams_out,
            )
    return made


ECHO = file(
    "echo.proto",
    PACKAGE,
    [
        (
            "SayRequest",
            [("text", FIELD.TYPE_STRING), ("repeat", FIELD.TYPE_INT32), ("code", FIELD.TYPE_INT32)],
        ),
        ("SayReply", [("text", FIELD.TYPE_STRING), ("number", FIELD.TYPE_INT64)]),
        ("CountRequest", [("to", FIELD.TYPE_INT32), ("pause_ms", FIELD.TYPE_INT32)]),
    ],
    "Echo",
    [
        ("Say", "SayRequest", "SayReply", False, False),
        ("Count", "CountRequest", "SayReply", False, True),
        ("Collect", "SayRequest", "SayReply", True, False),
        ("Chat", "SayRequest", "SayReply", True, True),
    ],
)
POOL = descriptor_pool.DescriptorPool()
POOL.Add(ECHO)


def message(name):
    found = POOL.FindMessageTypeByName(f"{PACKAGE}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(POOL).GetPrototype(found)


SayRequest, SayReply, CountRequest = map(message, ("SayRequest", "SayReply", "CountRequest"))
STATUSES = {status.value[0]: status for status in grpc.StatusCode}


class Books:
    def __init__(self):
        self.lock = threading.Lock()
        self.calls, self.statuses = {}, {}
        self.received = self.sent = 0

    def add(self, table, key):
        with self.lock:
            table[key] = table.get(key, 0) + 1

    def text(self):
        with self.lock:
            return json.dumps(
                {
                    "calls": self.calls,
                    "statuses": self.statuses,
                    "received": self.received,
                    "sent": self.sent,
                }
            )


BOOKS = Books()


def said(request):
    """A request came; the call ends here if it asks for that."""
    with BOOKS.lock:
        BOOKS.received += 1
    return STATUSES.get(request.code) if request.code else None


def reply(text, number):
    with BOOKS.lock:
        BOOKS.sent += 1
    return SayReply(text=text, number=number)


def echoed(request):
    return " ".join([request.text] * max(request.repeat, 1))


def end(context, status):
    BOOKS.add(BOOKS.statuses, status.name)
    if status is not grpc.StatusCode.OK:
        context.set_code(status)
        context.set_details("as it was asked for")


def say(request, context):
    BOOKS.add(BOOKS.calls, "Say")
    status = said(request)
    end(context, status or grpc.StatusCode.OK)
    return SayReply() if status else reply(echoed(request), 1)


def count(request, context):
    BOOKS.add(BOOKS.calls, "Count")
    with BOOKS.lock:
        BOOKS.received += 1
    for number in range(1, request.to + 1):
        if request.pause_ms:
            time.sleep(request.pause_ms / 1000)
        yield reply(str(number), number)
    end(context, grpc.StatusCode.OK)


def collect(requests, context):
    BOOKS.add(BOOKS.calls, "Collect")
    texts = []
    for request in requests:
        status = said(request)
        if status:
            end(context, status)
            return SayReply()
        texts.append(request.text)
    end(context, grpc.StatusCode.OK)
    return reply(" ".join(texts), len(texts))


def chat(requests, context):
    BOOKS.add(BOOKS.calls, "Chat")
    for number, request in enumerate(requests, 1):
        status = said(request)
        if status:
            return end(context, status)
        yield reply(echoed(request), number)
    end(context, grpc.StatusCode.OK)


def echo_handlers():
    def codec(takes):
        return {
            "request_deserializer": takes.FromString,
            "response_serializer": SayReply.SerializeToString,
        }

    return grpc.method_handlers_generic_handler(
        f"{PACKAGE}.Echo",
        {
            "Say": grpc.unary_unary_rpc_method_handler(say, **codec(SayRequest)),
            "Count": grpc.unary_stream_rpc_method_handler(count, **codec(CountRequest)),
            "Collect": grpc.stream_unary_rpc_method_handler(collect, **codec(SayRequest)),
            "Chat": grpc.stream_stream_rpc_method_handler(chat, **codec(SayRequest)),
        },
    )


def reflection_classes(package):
    """The messages of server reflection, as far as they are asked for here."""
    pool = descriptor_pool.DescriptorPool()
    made = file(
        "reflection.proto",
        package,
        [
            ("Files", []),
            ("Service", [("name", FIELD.TYPE_STRING)]),
            ("Services", []),
            ("Error", [("error_code", FIELD.TYPE_INT32), ("error_message", FIELD.TYPE_STRING)]),
            ("Request", []),
            ("Response", []),
        ],
    )
    by_name = {one.name: one for one in made.message_type}
    by_name["Files"].field.add(
        name="files", number=1, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_REPEATED
    )

    def within(owner, name, number, kind, label=FIELD.LABEL_OPTIONAL):
        by_name[owner].field.add(
            name=name,
            number=number,
            type=FIELD.TYPE_MESSAGE,
            type_name=f".{package}.{kind}",
            label=label,
        )

    within("Services", "service", 1, "Service", FIELD.LABEL_REPEATED)
    for name, number in (("file_by_filename", 3), ("symbol", 4), ("list_services", 7)):
        by_name["Request"].field.add(
            name=name, number=number, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL
        )
    for name, number, kind in (("files", 4, "Files"), ("services", 6, "Services")):
        within("Response", name, number, kind)
    within("Response", "error", 7, "Error")
    pool.Add(made)

    def known(name):
        found = pool.FindMessageTypeByName(f"{package}.{name}")
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(found)
        return message_factory.MessageFactory(pool).GetPrototype(found)

    return known("Request"), known("Response")


def reflection_handlers(version):
    package = f"grpc.reflection.{version}"
    request_class, response_class = reflection_classes(package)

    def answer(request):
        response = response_class()
        symbols = {f"{PACKAGE}.Echo"} | {f"{PACKAGE}.Echo.{one.name}" for one in ECHO.service[0].method}
        if request.symbol in symbols or request.file_by_filename == ECHO.name:
            response.files.files.append(ECHO.SerializeToString())
        elif request.list_services:
            for name in (f"{PACKAGE}.Echo", f"{package}.ServerReflection"):
                response.services.service.add(name=name)
        else:
            response.error.error_code = grpc.StatusCode.NOT_FOUND.value[0]
            response.error.error_message = f"not found: {request.symbol}{request.file_by_filename}"
        return response

    def info(requests, _context):
        for request in requests:
            yield answer(request)

    return grpc.method_handlers_generic_handler(
        f"{package}.ServerReflection",
        {
            "ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(
                info,
                request_deserializer=request_class.FromString,
                response_serializer=response_class.SerializeToString,
            )
        },
    )


def main():
    port, flags = sys.argv[1], sys.argv[2:]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    handlers = [echo_handlers()]
    if "--no-reflection" not in flags:
        handlers.append(reflection_handlers("v1alpha" if "--alpha" in flags else "v1"))
    server.add_generic_rpc_handlers(tuple(handlers))
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server.start()
    print(f"listening on 127.0.0.1:{bound}", flush=True)
    stopped.wait()
    server.stop(1).wait()
    print(BOOKS.text(), flush=True)


main()
