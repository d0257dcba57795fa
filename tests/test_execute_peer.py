"""The channel between program and tests: what crosses, what is refused, and bytes that nobody honest sends."""

import socket
import struct
import sys
import threading
import types

import codec
import peer
import pytest
import tests_side
from handles import Handle
from hypothesis import given, settings
from hypothesis import strategies as st
from peer import Peer
from references import Closed
from trust import allow

HEAD = struct.Struct(">IcI")
PROGRAM = """
class Own:
    size = 3
    def __init__(self, n): self.n = n
    def double(self): return 2 * self.n
    def __add__(self, other): return Own(self.n + other)
    def __len__(self): return self.n
    def __iter__(self): return iter(range(self.n))
    def __getitem__(self, i): return range(self.n)[i]
    def __repr__(self): return f'Own({self.n})'
    def __eq__(self, other): return True
    def __hash__(self): return 1

class Bare:
    pass

class Lost(ValueError):
    def __init__(self, what):
        super().__init__(f'{what} is lost')
        self.what = what

class Text(str):
    def shout(self): return Text(self.upper() + '!')

def same(x): return x
def change(xs): xs.append(len(xs))
def deepen(xs): xs[0].append(1)
def call(g, *args, **kwargs): return g(*args, **kwargs)
def lose(x): raise Lost(x)
def own(n): return Own(n)
def text(): return Text('ab')
kept = Own(5)
"""


class Ends:
    """A program's end, served by a thread, and the tests' end `tests` to ask it with."""

    def __init__(self, trust="strict", inplace=False, source=PROGRAM):
        module = types.ModuleType("solution")
        exec(source, module.__dict__)
        sys.modules["solution"] = module
        ours, theirs = socket.socketpair()
        self.program = Peer(theirs, 1 << 20)
        self.program.namespace = module.__dict__.__getitem__
        self.program.returns_arguments = inplace
        self.tests = Peer(ours, 1 << 20, allow=allow)
        self.tests.trust, self.tests.takes_arguments = trust, inplace
        self.refused = []
        self.tests.on_refusal = lambda refusal: self.refused.append(refusal.kind) or refusal
        self.thread = threading.Thread(target=self.program.serve, daemon=True)
        self.thread.start()

    def __getattr__(self, name):
        return self.tests.request("name", name)

    def close(self):
        self.tests._sock.close()
        self.thread.join(10)
        self.program._sock.close()


@pytest.fixture
def ends(request):
    made = []

    def make(*args, **kwargs):
        made.append(Ends(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()
    sys.modules.pop("solution", None)


def test_plain_values_and_calls(ends):
    at = ends()
    for value in (1, "a", [1, (2, {3})], {"k": [None, True]}, 1.5, b"x"):
        got = at.same(value)
        assert got == value and type(got) is type(value)
    assert at.call(at.same, 7) == 7 and at.call(lambda x, y=0: x - y, 5, y=2) == 3
    with pytest.raises(KeyError):
        at.tests.request("name", "nothing")


def test_arguments_are_copies_unless_changes_come_back(ends):
    xs = [0]
    ends().change(xs)
    assert xs == [0]
    inner = [0]
    outer = [inner, 7]
    at = ends(inplace=True)
    at.change(xs)
    assert xs == [0, 1]
    at.tests.request("name", "call")(at.deepen, outer)
    assert outer == [[0, 1], 7] and outer[0] is inner


def test_handles_are_used_as_the_object_would_be(ends):
    at = ends("named")
    made = at.Own(3)
    assert isinstance(made, Handle) and made.double() == 6 and len(made) == 3 and list(made) == [0, 1, 2]
    assert made[1] == 1 and repr(made) == "Own(3)" and (made + 1).n == 4 and isinstance(made, at.Own)
    assert made.size == 3 and hasattr(made, "n") and not hasattr(made, "m") and bool(made)
    made.n = 1
    assert made.double() == 2
    assert at.same(made) is made and at.kept is at.kept
    assert at.same.__name__ == "same" and type(made).__name__ == "Own"
    bare = at.Bare()
    assert bare == bare and bare != at.Bare()


@pytest.mark.parametrize("trust", ["strict", "named"])
def test_an_object_that_decides_itself_is_not_asked(ends, trust):
    at = ends(trust)
    made = at.own(3)
    for ask in (lambda: made == 3, lambda: made == made.n, lambda: made < 4, lambda: made in [4]):
        with pytest.raises(codec.Refused):
            ask()
    assert at.refused == ["unsupported_value"] * 4


def test_operators_follow_the_reference(ends):
    at = ends("named")
    at.tests.operators = []
    with pytest.raises(codec.Refused, match="calculated with"):
        at.own(3) + 1
    at.tests.operators = ["__add__"]
    assert (at.own(3) + 1).n == 4
    with pytest.raises(codec.Refused):
        ends("strict").own(3) + 1
    assert 2 in at.own(3) and 7 not in at.own(3)  # by what it holds


def test_subclasses_of_built_ins_count_as_their_built_in_part(ends):
    at = ends()
    got = at.text()
    assert got == "ab" and isinstance(got, str) and got.upper() == "AB" and got + "c" == "abc" and len(got) == 2
    assert got.shout() == "AB!" and hash(got) == hash("ab") and {"ab": 1}[got] == 1


def test_a_built_in_part_is_read_once_and_of_its_type(ends):
    at = ends()
    got = at.text()
    answers = ["xy", "zz"]
    original = peer.OPERATIONS["base"]
    peer.OPERATIONS["base"] = lambda value: answers.pop()
    try:
        assert got == "zz" and got == "zz" and answers == ["xy"]
        peer.OPERATIONS["base"] = lambda value: 7
        with pytest.raises(codec.Refused):
            assert at.text() == 7
    finally:
        peer.OPERATIONS["base"] = original


def test_exceptions_cross_with_class_text_and_attributes(ends):
    at = ends()
    with pytest.raises(ValueError, match="key is lost") as info:
        at.lose("key")
    assert type(info.value).__name__ == "Lost" and info.value.what == "key" and tests_side.remote(info.value)
    with pytest.raises(at.Lost):
        at.lose("key")
    with pytest.raises(ZeroDivisionError) as info:
        at.call(lambda: 1 // 0)  # ours, through the program and back
    assert not tests_side.remote(info.value)


# ---- what a program may ask of the tests' end


def ask(ends, *request):
    """What the tests' end says to a request that the program makes while it is called."""
    at = ends()

    def probe(given):
        return at.program.request(request[0], *[given if part is GIVEN else part for part in request[1:]])

    at.program.namespace = {"probe": probe}.__getitem__
    return at.tests.request("name", "probe")


GIVEN = object()


@pytest.mark.parametrize(
    "request_",
    [
        ("call", type, ("E", (), {"__eq__": bool}), {}),
        ("call", sys.modules["operator"].attrgetter, ("__globals__",), {}),
        ("call", len, ([],), {}),
        ("eq", 1, 1),
        ("getattr", "text", "format"),
        ("isinstance", 1, int),
        ("setattr", GIVEN, "anything", 1),
        ("getattr", GIVEN, "__globals__"),
        ("getattr", GIVEN, "__code__"),
        ("getattr", GIVEN, "__class__"),
        ("dir", GIVEN),
    ],
)
def test_a_program_may_only_use_what_it_was_handed(ends, request_):
    with pytest.raises((TypeError, AttributeError)):
        ask(ends, *request_)(lambda: 1)


@pytest.mark.parametrize("operation", ["name", "eval", "", "__import__"])
def test_unknown_requests_end_the_test(ends, operation):
    at = ends()
    at.program.namespace = {"probe": lambda: at.program._send(b"?", (operation, ("secret",)))}.__getitem__
    with pytest.raises(codec.Malformed):
        at.tests.request("name", "probe")()


def frame(sort, value, head=b""):
    body = codec.encode(value, None, 1 << 20)
    return HEAD.pack(len(head) + len(body), sort, len(head)) + head + body


def answered(data):
    """What a request gives whose answer is `data`, from a program that then hangs up."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        return Peer(ours, 1 << 16, allow=allow, incoming=1 << 16).request("name", "f")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Closed),
        (b"\0\0\0", Closed),
        (frame(b"=", 1)[:-1], Closed),
        (frame(b"!", 1), codec.Malformed),
        (HEAD.pack(1 << 31, b"=", 0), codec.Malformed),
        (HEAD.pack(4, b"=", 5) + b"aaaa", codec.Malformed),
        (frame(b"^", 1), codec.Malformed),
        (frame(b"^", (7,)), codec.Malformed),
        (frame(b"^", (0, ((),), "", (), "", 1)), codec.Malformed),
        (frame(b"~", ("passed",)), codec.Malformed),
        (frame(b"?", 7), codec.Malformed),
        (frame(b"?", ("call", 7)), codec.Malformed),
        (frame(b"~", ("passed", "")), codec.Malformed),
        (HEAD.pack(10, b"=", 0) + b"r" + struct.pack(">cq", b"o", 5), codec.Malformed),
        (HEAD.pack(10, b"=", 0) + b"r" + struct.pack(">cq", b"p", 1), codec.Malformed),
        (frame(b"=", 1, codec.encode([(1, "object", "X", (), "")], None, 999)), codec.Malformed),
        (frame(b"=", 1, codec.encode([(1, "exception", "X", (), "", ())], None, 999)), codec.Malformed),
    ],
)
def test_answers_that_nobody_honest_sends(data, error):
    with pytest.raises(error):
        answered(data)


def test_a_refusal_says_why():
    with pytest.raises(codec.Refused, match="too big") as info:
        answered(frame(b"~", ("output_limit", "too big")))
    assert info.value.kind == "output_limit"


NAMES = st.text(max_size=8) | st.sampled_from(["int", "list", "builtins", "ValueError", "a\0b", "\ud800", "call", "eq"])
TUPLES = st.lists(NAMES, max_size=4).map(tuple)
LINEAGE = st.lists(st.tuples(NAMES, NAMES, st.integers(0, 9)), max_size=4).map(tuple)
DESCRIPTION = st.tuples(st.integers(0, 9), NAMES | st.just("exception"), NAMES, TUPLES, NAMES, LINEAGE)
ERROR = st.tuples(st.integers(0, 9), LINEAGE, NAMES, TUPLES, NAMES, st.integers(0, 9))
PLAIN = st.integers() | NAMES | st.none() | st.booleans()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@settings(max_examples=250, deadline=None)
@given(
    st.sampled_from([b"?", b"=", b"^", b"~"]), ERROR | VALUES, st.lists(DESCRIPTION, max_size=3), st.binary(max_size=12)
)
def test_any_answer_is_a_value_or_an_error_that_ends_the_test(sort, value, descriptions, noise):
    head = codec.encode(descriptions, None, 1 << 16) if descriptions else b""
    try:
        answered(frame(sort, value, head) + noise)
    except (codec.Malformed, Closed, codec.Refused):
        pass
    except BaseException as error:
        assert sort == b"^" and tests_side.remote(error)
