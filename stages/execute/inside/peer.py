"""One end of the channel between the candidate's process and the tests' process.

Both ends can ask and answer, so that a test may pass a function of its own to the candidate. Objects that are not
plain values stay where they are; the other end gets a handle (handles.py). A frame is a length, one byte for its
sort, a block that describes new objects, and the message, all in the codec's bytes.

Sorts: ``?`` request, ``=`` answer, ``^`` an exception, ``~`` a value that may not cross. The tests' process checks
everything that it reads; what it does not understand ends the test as protocol_error. Run alone: no.
"""

import _thread
import struct
import sys

import codec
from operations import OPERATIONS
from references import Closed, References

MAX_ARGUMENTS = 1 << 26  # bytes of what the tests send
MAX_NESTING = 60  # calls back and forth inside one another

_HEAD = struct.Struct(">IcI")
_setrecursionlimit, _getrecursionlimit = sys.setrecursionlimit, sys.getrecursionlimit


class Peer(References):
    """One end. `policy` (the owner of this end) says which requests of the other end are answered: see `allow`."""

    def __init__(self, sock, budget, allow=None, incoming=MAX_ARGUMENTS):
        super().__init__()
        self._sock = sock
        self._budget, self._incoming = budget, incoming  # bytes of a message that is sent, that is taken
        self._allow = allow  # None: every request is answered (the candidate's side)
        self.namespace = None  # what the request "name" looks in
        self.trust = "open"  # open | named | strict: what handles may ask of the other end's objects, see handles.py
        self.operators = None  # special methods that trust "named" asks for with a plain value; None: any
        self.on_refusal = None  # called when a handle refuses, with the Refused
        self.on_call = None  # called after each call on a function of the other end: name, args, kwargs, result
        self.returns_arguments = False  # answer calls with the arguments as the call left them
        self.takes_arguments = False  # the other end answers calls so
        self.frames_of = lambda error: ""
        self._asking = _thread.RLock()  # threads of a program may all call a function of the tests
        self.broken = None  # the Closed or Malformed that ended this channel
        self._nesting, self._buffer = 0, bytearray()

    def _send(self, sort, value):
        limit = _getrecursionlimit()
        if limit < 900:
            _setrecursionlimit(1000)  # the candidate may have lowered it
        body = codec.encode(value, self._reference_to, self._budget)
        head = b""
        while self._fresh:
            fresh, self._fresh = self._fresh, []
            head += codec.encode(fresh, self._reference_to, 1 << 24)
        self._sock.sendall(_HEAD.pack(len(head) + len(body), sort, len(head)) + head + body)
        if limit < 900:
            _setrecursionlimit(limit)

    def _read(self, size):
        while len(self._buffer) < size:
            try:
                chunk = self._sock.recv(1 << 16)
            except ConnectionError:
                chunk = b""
            if not chunk:
                raise Closed
            self._buffer += chunk
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _receive(self):
        length, sort, head = _HEAD.unpack(self._read(_HEAD.size))
        if length > self._incoming + (1 << 24) or head > length or sort not in b"?=^~":
            raise codec.Malformed("a frame that is too long")
        data = self._read(length)
        if head:
            self._learn(codec.decode(data[:head], self._resolve))
        return sort, codec.decode(data[head:], self._resolve)

    def request(self, operation, *operands):
        """Ask the other end; answers its questions meanwhile. Raises what it raises."""
        try:
            with self._asking:
                return self._request(operation, operands)
        except (Closed, codec.Malformed) as error:
            self.broken = error
            raise
        except BrokenPipeError:
            self.broken = Closed()
            raise self.broken from None

    def _request(self, operation, operands):
        self._send(b"?", (operation, operands))
        while True:
            sort, value = self._receive()
            if sort == b"?":
                self._answer(value)
            elif sort == b"=":
                return value
            elif sort == b"^":
                raise self._unpack_error(value)
            else:
                if type(value) is not tuple or [type(x) for x in value] != [str, str]:
                    raise codec.Malformed("a refusal")
                raise self.refused(codec.Refused(value[0], value[1]))

    def refused(self, refusal):
        """Note a refusal and give it back as what is raised."""
        if self.on_refusal:
            return self.on_refusal(refusal)
        return refusal

    def _answer(self, message):
        self._nesting += 1
        try:
            operation, operands = message
            if self._nesting > MAX_NESTING:
                raise RecursionError("calls between solution and tests are nested too deep")
            self._send(b"=", self._perform(operation, operands))
        except codec.Refused as refusal:
            self._send(b"~", (refusal.kind, str(refusal)))
        except (Closed, codec.Malformed, BrokenPipeError):
            raise
        except BaseException as error:
            packed = self._pack_error(error)
            self._send(b"^", packed)
        finally:
            self._nesting -= 1

    def _perform(self, operation, operands):
        if operation == "name" and self.namespace is not None:
            return self.namespace(*operands)
        if operation not in OPERATIONS:
            raise codec.Malformed("an unknown operation")
        if self._allow is not None:
            # Only what this end handed over: else the other end builds and takes apart whatever it likes here, with
            # types and functions that cross by name.
            if not operands or not self._handed_over(operands[0]):
                raise TypeError("this is no object of the tests")
            self._allow(operation, operands)
        result = OPERATIONS[operation](*operands)
        if self.returns_arguments and operation == "call":
            return result, operands[1]  # the arguments as the call left them
        return result

    def serve(self):
        """Answer requests until the other end closes."""
        try:
            while True:
                sort, value = self._receive()
                if sort != b"?":
                    raise codec.Malformed("an answer to nothing")
                self._answer(value)
        except (Closed, BrokenPipeError):
            return
