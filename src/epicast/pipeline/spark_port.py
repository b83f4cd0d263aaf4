"""Is what listens at an address a Spark master, or Spark Connect? Asked before Spark itself tries, which takes minutes.

A master speaks Spark's transport: frames of a length (8 bytes), a type (1 byte) and a body. We ask it for a file that
it does not have. It answers that there is no such stream, and repeats the name; nothing else does that. Spark Connect
is told over gRPC to forget a session that never was: other services do not know that method.
"""

from __future__ import annotations

import socket
from uuid import uuid4

from epicast.core.errors import EpicastError

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 8.0  # our guess: a busy machine answers within a second
ANSWER_BYTES_MAX = 4096
ANSWER_PARTS_MAX = 3  # so short an answer comes in one; the next one is waited for anew

STREAM = b"/files/epicast"
_STREAM_REQUEST, _STREAM_FAILURE = 6, 8
_LENGTH, _TYPE, _TEXT_LENGTH = 8, 1, 4
_CONNECT_METHOD = "/spark.connect.SparkConnectService/ReleaseSession"


def require_master(master: str, host: str, port: int) -> None:
    if not _answers_as_spark(_dialled(master, host, port)):
        raise EpicastError(
            f"cannot use {master}: what listens there is no Spark master; check the port (it is 7077 by default)"
        )


def require_connect(master: str, host: str, port: int, *, tls: bool) -> None:
    """Behind TLS only that something listens is looked at: certificates are Spark's business."""
    _dialled(master, host, port).close()
    if tls:
        return
    if not _answers_as_connect(f"{host}:{port}"):
        raise EpicastError(
            f"cannot use {master}: what listens there is not Spark Connect; check the port (it is 15002 by default)"
        )


def _dialled(master: str, host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), CONNECT_TIMEOUT_S)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or ("no such port" if isinstance(error, OverflowError) else "no answer")
        raise EpicastError(f"cannot reach {master}: {why}; is it running, and is the port right?") from None


# A standalone master


def _answers_as_spark(connection: socket.socket) -> bool:
    try:
        with connection:
            connection.sendall(_frame(_STREAM_REQUEST, _text(STREAM)))
            return _says_no_such_stream(connection)
    except OSError:  # silent for too long, or it hung up
        return False


def _says_no_such_stream(connection: socket.socket) -> bool:
    expected = bytes([_STREAM_FAILURE]) + _text(STREAM)
    size = _LENGTH + len(expected)
    answer = b""
    connection.settimeout(ANSWER_TIMEOUT_S)
    for _ in range(ANSWER_PARTS_MAX):
        answer += connection.recv(size - len(answer))
        if len(answer) == size:
            break
    return answer[_LENGTH:] == expected and int.from_bytes(answer[:_LENGTH], "big") <= ANSWER_BYTES_MAX


def _frame(kind: int, body: bytes) -> bytes:
    return (_LENGTH + _TYPE + len(body)).to_bytes(_LENGTH, "big") + bytes([kind]) + body


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(_TEXT_LENGTH, "big") + text


# Spark Connect


def _answers_as_connect(target: str) -> bool:
    import grpc  # type: ignore[import-untyped]

    with grpc.insecure_channel(target) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_TIMEOUT_S)
            channel.unary_unary(_CONNECT_METHOD)(_forget_a_session(), timeout=ANSWER_TIMEOUT_S)
        except grpc.FutureTimeoutError:
            return False
        except grpc.RpcError as error:
            return error.code() not in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.DEADLINE_EXCEEDED)
    return True


def _forget_a_session() -> bytes:
    from pyspark.sql.connect.proto import ReleaseSessionRequest, UserContext

    request = ReleaseSessionRequest(session_id=str(uuid4()), user_context=UserContext(user_id="epicast"))
    return bytes(request.SerializeToString())
