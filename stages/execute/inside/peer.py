"""One end of the channel between the candidate's process and the tests' process.

Both ends can ask and answer, so that a test may pass a function of its own to the candidate. Objects that are not
plain values stay where they are; the other end gets a handle (handles.py). A frame is a length, one byte for its
sort, a block that describes new objects, and the message, all in the codec's bytes.

Sorts: ``?`` request, ``=`` answer, ``^`` an exception, ``~`` a value that may not cross. The tests' process checks
everything that it reads; what it does not understand ends the test as protocol_error. Run alone: no.
"""

import _thread
import collections
import struct
import sys

import codec
from operations import OPERATIONS
from references import Closed, References

MAX_ARGUMENTS = 1 << 26  # bytes of what the tests send
MAX_NESTING = 60  # calls back and forth inside one another
REFUSALS = ("unsupported_value", "output_limit")  # verdicts that the candidate's end may give itself

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
        self._lent = collections.deque(maxlen=8)  # containers read off objects: object, attribute, container, bytes
        self.may_swallow = None  # asked whether a `with` on an object of the other end may end an error: error, frame
        self.stops = False  # whether the tests expect calls to raise StopIteration
        self.failed_inside = None  # the latest assert that failed in a function of the tests called by the other end
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
                for one in [*self._lent]:
                    self._give_back(one)
                return self._request(operation, operands)
        except (Closed, codec.Malformed) as error:
            self.broken = error
            raise
        except BrokenPipeError:
            self.broken = Closed()
            raise self.broken from None

    def lend(self, handle, name, value):
        """Have what the tests do to `value`, an attribute of the object, done to the object's own, too."""
        if self.trust != "open" and type(value) in (list, dict, set, collections.deque):
            self._lent.append([handle, name, value, self._image(value)])

    def _image(self, value):
        try:
            return codec.encode(value, self._reference_to, 1 << 16)
        except codec.Refused:
            return None  # too large to be looked at before every request

    def _give_back(self, lent):
        handle, name, value, before = lent
        now = before and self._image(value)
        if now != before:
            lent[3] = now
            try:
                self._request("put_back", (handle, name, value))
            except Exception:
                self._lent.remove(lent)  # the object has no such attribute any more

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
                if type(value) is not tuple or [type(x) for x in value] != [str, str] or value[0] not in REFUSALS:
                    raise codec.Malformed("a refusal")
                raise self.refused(codec.Refused(value[0], value[1]))

    def surprise(self, error):
        """A RuntimeError in place of an exception that the tests' own code would take for something else."""
        other = RuntimeError(f"{type(error).__name__} was raised")
        other._murphy_text, other._murphy_frames, other._murphy_origin = (
            str(other),
            error._murphy_frames,
            error._murphy_origin,
        )
        return other

    def refused(self, refusal):
        """Note a refusal and give it back as what is raised."""
        if self.on_refusal:
            return self.on_refusal(refusal)
        return refusal

    def _answer(self, message):
        self._nesting += 1
        try:
            if type(message) is not tuple or [type(x) for x in message] != [str, tuple]:
                raise codec.Malformed("a request")
            operation, operands = message
            if self._nesting > MAX_NESTING:
                raise RecursionError("calls between solution and tests are nested too deep")
            self._send(b"=", self._perform(operation, operands))
        except codec.Refused as refusal:
            self._send(b"~", (refusal.kind, str(refusal)))
        except (Closed, codec.Malformed, BrokenPipeError):
            raise
        except BaseException as error:
            if self._allow is not None and isinstance(error, AssertionError) and not hasattr(error, "_murphy_origin"):
                self.failed_inside = error
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
            return result, operands[1], operands[2]  # the arguments as the call left them
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
