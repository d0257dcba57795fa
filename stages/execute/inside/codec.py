"""Bytes for values that cross between the candidate's process and the tests' process: exact built-in types, in budgets.

No pickle: decoding builds nothing but plain values, so that neither side can make the other run code. A type counts
only if it is exactly the built-in (``type(x) is int``); a few value types of the standard library (Counter, deque,
Decimal, datetime, ...) cross as their parts. Everything else goes through `foreign`, which either names a
reference (an object that stays where it is, see peer.py) or refuses.

Neither encoder nor decoder recurses, so depth is a number that is checked and never a crash. Run alone: no.
"""

import collections
import struct
from itertools import chain

from parts import BUILD, PARTS
from refusals import Malformed, Refused
from shared import SHARED, SHARED_NAME

MAX_DEPTH = 800  # containers inside containers
MAX_NODES = 8_000_000  # values in one message

_pack_double = struct.Struct(">d").pack
_pack_count = struct.Struct(">I").pack
_double = struct.Struct(">d").unpack_from
_pair = struct.Struct(">dd")
_count = struct.Struct(">I").unpack_from


def encode(value, foreign, budget):
    """Bytes of `value`, at most `budget`.

    `foreign(x)` is called for every value that is not plain. It returns ``("plain", y)`` to send y in its place,
    ``("parts", (name, parts))`` for a value that is built from parts, or ``("ref", bytes)`` for a reference.
    Raises Refused: output_limit over the budget, unsupported_value too deep.
    """
    out = bytearray()
    stack = [iter((value,))]
    nodes = 0
    while stack:
        for item in stack[-1]:
            nodes += 1
            if len(out) > budget or nodes > MAX_NODES:
                raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
            kind = type(item)
            inner = None
            while True:
                if item is None:
                    out += b"N"
                elif kind is bool:
                    out += b"T" if item else b"F"
                elif kind is int:
                    size = item.bit_length() // 8 + 1
                    if len(out) + size > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    if size < 256:
                        out += b"i"
                        out.append(size)
                    else:
                        out += b"I" + _pack_count(size)
                    out += item.to_bytes(size, "big", signed=True)
                elif kind is str:
                    if len(item) + len(out) > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    data = item.encode("utf-8", "surrogatepass")
                    out += b"s" + _pack_count(len(data)) + data
                elif kind is float:
                    out += b"f" + _pack_double(item)
                elif kind is list or kind is tuple or kind is set or kind is frozenset:
                    if len(item) + len(out) > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    tag = b"l" if kind is list else b"t" if kind is tuple else b"e" if kind is set else b"z"
                    out += tag + _pack_count(len(item))
                    inner = iter(item)
                elif kind is dict:
                    if 2 * len(item) + len(out) > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    out += b"d" + _pack_count(len(item))
                    inner = chain.from_iterable(item.items())
                elif kind is bytes:
                    if len(item) + len(out) > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    out += b"b" + _pack_count(len(item)) + item
                elif kind is complex:
                    out += b"c" + _pair.pack(item.real, item.imag)
                elif kind in PARTS:
                    if kind in (collections.deque, bytearray) and len(item) + len(out) > budget:
                        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
                    name, parts = PARTS[kind]
                    try:
                        pieces = parts(item)
                    except (TypeError, AttributeError, ValueError) as error:
                        raise Refused("unsupported_value", f"a {name} that cannot be copied") from error
                    out += b"x"
                    inner = iter((name, pieces))
                elif id(item) in SHARED_NAME and SHARED[SHARED_NAME[id(item)]] is item:
                    name = SHARED_NAME[id(item)].encode()
                    out += b"n" + bytes([len(name)]) + name
                else:
                    how, other = foreign(item)
                    if how == "plain":
                        item, kind = other, type(other)
                        continue
                    if how == "parts":
                        out += b"x"
                        inner = iter(other)
                    else:
                        out += other
                break
            if inner is not None:
                if len(stack) > MAX_DEPTH:
                    raise Refused("unsupported_value", f"the value is nested deeper than {MAX_DEPTH}")
                stack.append(inner)
                break
        else:
            stack.pop()
    if len(out) > budget:
        raise Refused("output_limit", f"the value is larger than {budget // 1024} KB")
    return bytes(out)


def decode(data, reference):
    """The value that `data` holds; `reference(bytes)` turns a reference's 9 bytes (see peer.py) into an object.

    Raises Malformed for anything that :func:`encode` does not produce.
    """
    position = 0
    end = len(data)
    # Each frame: [tag, how many values are still to come, values so far]
    stack = [["root", 1, []]]
    while True:
        frame = stack[-1]
        if frame[1] == 0:
            stack.pop()
            tag, values = frame[0], frame[2]
            if tag == "root":
                if position != end:
                    raise Malformed("bytes after the value")
                return values[0]
            try:
                stack[-1][2].append(_close(tag, values))
            except Malformed:
                raise
            except Exception as error:  # whatever the parts are wrong in
                raise Malformed(f"parts that do not fit: {type(error).__name__}") from None
            continue
        frame[1] -= 1
        if position >= end:
            raise Malformed("the message ends early")
        tag = data[position : position + 1]
        position += 1
        if tag in b"NTF":
            value = None if tag == b"N" else tag == b"T"
        elif tag == b"i":
            size = data[position] if position < end else 0
            value = int.from_bytes(_take(data, position + 1, size), "big", signed=True)
            position += 1 + size
        elif tag == b"f":
            (value,) = _double(_take(data, position, 8))
            position += 8
        elif tag == b"c":
            value = complex(*_pair.unpack(_take(data, position, 16)))
            position += 16
        elif tag in b"sbI":
            (size,) = _count(_take(data, position, 4))
            raw = _take(data, position + 4, size)
            position += 4 + size
            if tag == b"s":
                try:
                    value = raw.decode("utf-8", "surrogatepass")
                except UnicodeDecodeError:
                    raise Malformed("text that is not UTF-8") from None
            else:
                value = bytes(raw) if tag == b"b" else int.from_bytes(raw, "big", signed=True)
        elif tag in b"ltezd":
            (count,) = _count(_take(data, position, 4))
            position += 4
            total = count * 2 if tag == b"d" else count
            if total > end - position or len(stack) > MAX_DEPTH + 1:
                raise Malformed("a count that the message cannot hold")
            stack.append([tag, total, []])
            continue
        elif tag == b"x":
            stack.append([tag, 2, []])
            if len(stack) > MAX_DEPTH + 8:
                raise Malformed("nested too deep")
            continue
        elif tag == b"n":
            size = data[position] if position < end else 0
            name = _take(data, position + 1, size).decode("ascii", "replace")
            position += 1 + size
            if name not in SHARED:
                raise Malformed("an unknown name")
            value = SHARED[name]
        elif tag == b"r":
            value = reference(_take(data, position, 9))
            position += 9
        else:
            raise Malformed("an unknown tag")
        frame[2].append(value)


def _take(data, position, size):
    piece = data[position : position + size]
    if len(piece) != size:
        raise Malformed("the message ends early")
    return piece


def _close(tag, values):
    if tag == b"l":
        return values
    if tag == b"t":
        return tuple(values)
    if tag == b"d":
        return dict(zip(values[::2], values[1::2], strict=True))
    if tag == b"e":
        return set(values)
    if tag == b"z":
        return frozenset(values)
    name, parts = values
    if type(name) is not str or name not in BUILD or type(parts) is not tuple:
        raise Malformed("an unknown value type")
    return BUILD[name](*parts)
