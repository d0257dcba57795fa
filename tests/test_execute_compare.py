"""Output of programs against what was expected."""

import pytest

from stages.execute.compare import difference, same


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"1 2\n3\n", b"1 2\n3"), (b"1 2\r\n3\r\n", b"1 2\n3\n"), (b"1 2\n3", b"1 2\r\n3\r\n"),
        (b"  1\t2  \n\n\n3 ", b"1 2\n3"),
        (b"", b""), (b"", b"\n \n"), (b"\n", b""), (b"0.3333333", b"0.33333333"), (b"1", b"1.0"), (b"1e3", b"1000.0"),
        (b"-0.0", b"0.0"), (b"1000000.4", b"1000000.5"), (b"\xff\x00", b"\xff\x00\n"), ("ß 𝄞\n".encode(),
        "ß 𝄞".encode()),
        (b"nan", b"nan"), (b"YES", b"YES"),
    ],
)  # fmt: skip
def test_right(got, expected):
    assert same(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (b"", b"0"), (b"0", b""), (b"1 2\n3", b"1 2 3"), (b"1 2 3", b"1 2\n3"), (b"12", b"1 2"), (b"1 2", b"12"),
        (b"1\n1", b"1"),
        (b"yes", b"YES"), (b"2", b"3"), (b"10000000000000001", b"10000000000000002"), (b"1.0", b"1"), (b"01", b"1"),
        (b"0.333", b"0.33333333"), (b"nan", b"1.0"), (b"inf", b"1.0"), (b"1e999", b"1.0"), (b"1_0.0", b"10.0"),
        (b"\xff", b"\xfe"), (b"1\x00", b"1"), ("e\u0301".encode(), "\u00e9".encode()), (b"0x10", b"16.0"),
        (b"1" * 5000 + b".5", b"1.5"),
    ],
)  # fmt: skip
def test_wrong(got, expected):
    assert not same(got, expected)


def test_exact_and_tolerance():
    assert same(b"1\n", b"1\n", exact=True) and not same(b"1", b"1\n", exact=True)
    assert same(b"1.05", b"1.0", tolerance=0.1) and not same(b"1.05", b"1.0", tolerance=0)
    assert same(b"1.50", b"1.50", tolerance=0) and not same(b"1.5", b"1.50", tolerance=0)
    assert same(b"2.0 -7.0000001", b"2 -7", tolerance=1e-6) and not same(b"2.0", b"2")
    assert not same(b"3", b"2", tolerance=0.9) and not same(b"inf", b"2", tolerance=0.9)
    assert not same(b"2.0", b"2" * 500, tolerance=0.9)


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (b"1\n2\n\n3\n4", b"1\n2\n5\n4", "first difference in line 3: got 3, expected 5"),
        (b"1\n2\n3", b"1\n2\n3\n4", "first difference in line 4: got no more output, expected 4"),
        (b"1\n2\n3\n4", b"1", "first difference in line 2: got 2, expected no more output"),
        (b"a\nb\nc\nd 0.5", b"a\nb\nc\nd  0.50000001", None),
        (b"a\nb\nc\n" + b"x" * 99, b"a\nb\nc\n\xff", f"first difference in line 4: got {'x' * 80} ..., expected \\xff"),
        (b"1", b"2", None),
    ],
)
def test_where_output_differs(got, expected, text):
    assert difference(got, expected) == text
