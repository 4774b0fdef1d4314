"""Runs a gRPC server that responds as a test scripts it: right, wrong, cut short or not at all.

The server knows HTTP/2 (python3-h2) and nothing of gRPC but the five bytes before a message. scripted_server.py
explains scripts; our client makes one call on a connection.
"""

import base64
import gzip
import struct
import sys

import h2.config
import h2.connection
import h2.events

from profiled import BUILD
from scripted_server import Gone, ScriptedExchange, ScriptedServer

sys.path.insert(0, str(BUILD / "python"))
import profiles_service_pb2  # noqa: E402
import rpc_status_pb2  # noqa: E402

HEADERS = [(":status", "200"), ("content-type", "application/grpc")]


# --- parts of scripts ---


def status(code, message=None, details=None):
    fields = [("grpc-status", str(code))]
    if message is not None:
        fields.append(("grpc-message", message))
    if details is not None:
        fields.append(("grpc-status-details-bin", details))
    return fields


def retry_info(seconds, nanos=0, padded=False):
    """Returns the value of grpc-status-details-bin."""
    info = rpc_status_pb2.RetryInfo()
    info.retry_delay.seconds = seconds
    info.retry_delay.nanos = nanos
    whole = rpc_status_pb2.RpcStatus(code=8)
    whole.details.add(
        type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString()
    )
    text = base64.b64encode(whole.SerializeToString()).decode()
    return text if padded else text.rstrip("=")


def wrapped(message, flag=0):
    return struct.pack(">BI", flag, len(message)) + message


def answer(trailers, body=wrapped(b""), headers=HEADERS):
    """Sends the ordinary response: headers, a message, trailers."""

    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(headers)
        if body:
            exchange.data(body)
        exchange.headers(trailers, end=True)

    return script


def trailers_only(fields, headers=HEADERS):
    def script(exchange):
        exchange.wait_for_the_end()
        exchange.headers(headers + fields, end=True)

    return script


OK = answer(status(0))


# --- the server ---


class Call:
    def __init__(self, fields):
        self.fields = fields
        self.body = b""
        self.ended = False

    def message(self):
        """Returns the export in the call, unwrapped and decompressed."""
        flag, size = struct.unpack(">BI", self.body[:5])
        assert size == len(self.body) - 5
        data = self.body[5:]
        assert flag == ("grpc-encoding" in self.fields)
        if flag:
            assert self.fields["grpc-encoding"] == "gzip"
            data = gzip.decompress(data)
        return profiles_service_pb2.ExportProfilesServiceRequest.FromString(data)


class Exchange(ScriptedExchange):
    """Is one connection, on which our client makes one call."""

    def __init__(self, connection, takes_all):
        super().__init__(connection)
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(
                client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False,
                header_encoding="utf-8",
            )
        )
        self.takes_all = takes_all
        self.stream = None
        self.call = None
        self.went_away = False
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise Gone
        if self.went_away:  # a call that crosses our GOAWAY needs no response
            return
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.stream = event.stream_id
                self.call = Call(dict(event.headers))
            elif isinstance(event, h2.events.DataReceived):
                self.call.body += event.data
                if self.takes_all:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.call.ended = True
        self.flush()

    def wait_for_the_call(self):
        while self.call is None:
            self.receive()

    def wait_for_the_end(self):
        while self.call is None or not self.call.ended:
            self.receive()

    def headers(self, fields, end=False):
        self.h2.send_headers(self.stream, fields, end_stream=end)
        self.flush()

    def data(self, data, end=False):
        self.h2.send_data(self.stream, data, end_stream=end)
        self.flush()

    def reset(self, code):
        self.h2.reset_stream(self.stream, code)
        self.flush()

    def go_away(self, code):
        self.h2.close_connection(code, last_stream_id=0)
        self.flush()
        self.went_away = True


class GrpcServer(ScriptedServer):
    """With `takes_all` false, the server receives only the 65,535 bytes of a body that a client may send at once."""

    def __init__(self, *scripts, takes_all=True):
        self.takes_all = takes_all
        super().__init__(scripts)

    def exchange(self, connection, script):
        try:
            exchange = Exchange(connection, self.takes_all)
            exchange.wait_for_the_call()
            self.calls.append(exchange.call)
            script(exchange)
            exchange.wait_until_the_client_goes()
        finally:
            connection.close()
