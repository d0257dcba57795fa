"""Programs that look odd and are right; see attack_parts.py."""

from tests.attack_parts import FILE, RIGHT, STDIO, TESTS

GOOD: list[dict] = []


def good(name, code, tests=TESTS, **more):
    """A program that is right."""
    GOOD.append({"id": name, "code": code, "tests": tests, "expected": "passed", "reward": 1.0, **more})


# ---- odd, but right

good(
    "a-named-tuple",
    """
from collections import namedtuple
P = namedtuple('P', 'a b')
def f(x): return P(x, 2 * x)
""",
    [
        "assert f(1) == (1, 2)",
        "a, b = f(3)\nassert b == 6",
        "assert f(2)[1] == 4 and len(f(2)) == 2",
        "assert f(1).b == 2",
    ],
)
good(
    "enums-and-bools",
    """
import enum
class E(enum.IntEnum):
    TWO = 2
def f(x): return E.TWO if x == 1 else 2 * x
""",
)
good(
    "subclasses-of-built-ins",
    """
class L(list):
    def total(self): return sum(self)
class D(dict):
    def __missing__(self, key): return 0
def f(x): return L([x, x]) if x else D(a=1)
""",
    [
        "assert f(1) == [1, 1]",
        "assert f(2)[0] == 2 and len(f(2)) == 2",
        "assert f(0) == {'a': 1}",
        "assert sorted(f(3)) == [3, 3]",
        "assert [1, 1] == f(1)",
        "assert sum(f(2)) == 4 and list(reversed(f(2))) == [2, 2]",
        "assert 2 in f(2) and 3 not in f(2)",
    ],
)
good(
    "counters-and-deques",
    """
from collections import Counter, OrderedDict, defaultdict, deque
def f(x):
    d = defaultdict(list); d['a'].append(x)
    return [Counter('aab'), OrderedDict(a=1), d, deque([x], maxlen=3)][x]
""",
    [
        "assert f(0) == {'a': 2, 'b': 1} and f(0).most_common(1) == [('a', 2)]",
        "assert f(1) == {'a': 1}",
        "assert f(2) == {'a': [2]} and f(2)['z'] == []",
        "from collections import deque\nassert f(3) == deque([3]) and f(3).maxlen == 3",
    ],
)
good(
    "views-and-ranges",
    """
def f(x): return [{1: 2}.keys(), {1: 2}.values(), {1: 2}.items(), range(3), zip([1], [2]), enumerate('a'), map(str, [1])][x]
""",
    [
        "assert f(0) == {1} and set(f(0)) == {1}",
        "assert list(f(1)) == [2] and sorted(f(1)) == [2]",
        "assert f(2) == {(1, 2)}",
        "assert f(3) == range(3) and list(f(3)) == [0, 1, 2]",
        "assert list(f(4)) == [(1, 2)]",
        "assert dict(f(5)) == {0: 'a'}",
        "assert f(0) != [1] and f(1) != [2]",
        "assert next(f(6)) == '1'",
    ],
)
good(
    "numbers",
    """
from decimal import Decimal
from fractions import Fraction
def f(x): return [float('nan'), -0.0, float('inf'), 10**5000, Decimal('0.10'), Fraction(1, 3), 1j, True, 2**64 - 1][x]
""",
    [
        "import math\nassert math.isnan(f(0)) and f(0) != f(0)",
        "import math\nassert math.copysign(1, f(1)) == -1 and str(f(1)) == '-0.0'",
        "assert f(2) == float('inf') and f(2) > 10**300",
        "assert f(3) == 10**5000 and len(str(f(3))) == 5001",
        "from decimal import Decimal\nassert f(4) == Decimal('0.1') and str(f(4)) == '0.10'",
        "from fractions import Fraction\nassert f(5) * 3 == 1 and f(5) == Fraction(1, 3)",
        "assert f(6) ** 2 == -1",
        "assert f(7) is True",
        "assert f(8) == 18446744073709551615 and isinstance(f(8), int)",
    ],
)
good(
    "text",
    """
def f(x): return ['\\ud800', '\\x00\\n\\u2028', 'e\\u0301', '😀' * 3, b'\\xff\\x00', bytearray(b'ab'), ''][x]
""",
    [
        "assert f(0) == '\\ud800' and len(f(0)) == 1",
        "assert f(1) == chr(0) + chr(10) + chr(0x2028)",
        "assert f(2) != chr(0xe9)",
        "assert len(f(3)) == 3",
        "assert f(4) == bytes([255, 0])",
        "assert f(5) == b'ab' and f(5)[0] == 97",
        "assert f(6) == ''",
    ],
)
good(
    "generators-and-iterators",
    """
class Count:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
def f(x):
    if x % 2: return Count(x)
    return (2 * i for i in range(x))
""",
    [
        "assert list(f(3)) == [2, 1, 0]",
        "g = f(4)\nassert next(g) == 0 and next(g) == 2 and list(g) == [4, 6]",
        "assert sum(f(4)) == 12",
        "assert [x for x in f(3)] == [2, 1, 0]",
        "assert 2 in f(4) and max(f(4)) == 6",
        "assert next(f(0), 'none') == 'none'",
        "it = f(1)\nnext(it)\ntry:\n    next(it)\n    assert False\nexcept StopIteration:\n    pass",
    ],
)
good(
    "sends-to-a-generator",
    """
def f(x):
    total = 0
    while True:
        got = yield total
        total += x if got is None else got
""",
    ["g = f(1)\nassert next(g) == 0 and g.send(5) == 5 and next(g) == 6\ng.close()"],
)
good(
    "functions-come-and-go",
    """
def f(g, *rest, **named):
    if callable(g):
        return lambda y: g(g(y)) + named.get('add', 0)
    return sorted(rest, key=g)
""",
    [
        "assert f(lambda x: x + 1)(3) == 5",
        "def double(x): return 2 * x\nassert f(double, add=1)(3) == 13",
        "assert f(abs)(-2) == 2",
        "seen = []\ndef note(x):\n    seen.append(x)\n    return x\nf(note)(7)\nassert seen == [7, 7]",
        "assert f(None, 3, 1) == [1, 3]",
    ],
)
good(
    "callbacks-that-raise",
    """
def f(g):
    try: return g(1)
    except ZeroDivisionError as error: return type(error).__name__
""",
    [
        "assert f(lambda x: 1 // 0) == 'ZeroDivisionError'",
        "import pytest\nwith pytest.raises(KeyError):\n    f(lambda x: {}[x])",
        "class Own(Exception): pass\ndef g(x): raise Own('mine')\nimport pytest\nwith pytest.raises(Own, match='mine'):\n    f(g)",
    ],
)
good(
    "objects-of-the-tests",
    """
def f(node):
    total = 0
    while node is not None:
        total += node.value
        node = node.next
    return total
""",
    [
        "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\nassert f(Node(1, Node(2))) == 3"
    ],
)
good(
    "state-inside-a-test",
    "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n",
    ["assert [f(1), f(1), f(1)] == [1, 2, 3]", "assert f(5) == 1"],
)
good(
    "caches-and-decorators",
    """
import functools
@functools.lru_cache(maxsize=None)
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
""",
    ["assert f(80) == 23416728348467685", "assert f.__name__ == 'f' and f(2) == 1"],
)
good(
    "deep-recursion",
    """
import sys
sys.setrecursionlimit(10**6)
def f(n): return 0 if n == 0 else 2 + f(n - 1)
""",
    ["assert f(1) == 2", "assert f(20000) == 40000"],
)
good(
    "threads-and-pools",
    """
import threading
from concurrent.futures import ThreadPoolExecutor
def f(x):
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(lambda i: i, [x, x]))
""",
)
good(
    "asyncio",
    "import asyncio\nasync def g(x):\n    await asyncio.sleep(0)\n    return 2 * x\ndef f(x): return asyncio.run(g(x))\n",
)
good(
    "an-alarm-that-is-handled",
    """
import signal
class Late(Exception): pass
def on(*a): raise Late
def f(x):
    signal.signal(signal.SIGALRM, on)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        n = 0
        while True:
            n += 1
    except Late:
        return 2 * x
""",
)
good(
    "own-exceptions",
    """
class Base(Exception): pass
class Empty(Base, LookupError):
    def __init__(self, name):
        super().__init__(f'{name} is empty')
        self.name = name
def f(x): raise Empty(x)
""",
    [
        "import pytest\nwith pytest.raises(LookupError) as info:\n    f('a')\nassert str(info.value) == 'a is empty'",
        "try:\n    f('b')\n    assert False\nexcept Empty as error:\n    assert error.name == 'b'",
        "import pytest\nwith pytest.raises(Base):\n    f(1)",
    ],
)
VECTOR = """
class V:
    def __init__(self, *xs): self.xs = list(xs)
    def __add__(self, o): return V(*[a + b for a, b in zip(self.xs, o.xs)])
    def __mul__(self, k): return V(*[a * k for a in self.xs])
    __rmul__ = __mul__
    def __getitem__(self, i): return self.xs[i]
    def __len__(self): return len(self.xs)
    def __contains__(self, x): return x in self.xs
    def __call__(self, x): return x in self.xs
    def __enter__(self): return self
    def __exit__(self, *a): self.xs.clear()
    def __str__(self): return 'V' + str(self.xs)
    @property
    def total(self): return sum(self.xs)
    @classmethod
    def zero(cls, n): return cls(*[0] * n)
    @staticmethod
    def name(): return 'V'
"""
good(
    "classes-with-operators",
    VECTOR,
    [
        "v = V(1, 2) + V(3, 4)\nassert v[0] == 4 and len(v) == 2 and v.total == 10 and 6 in v and v(4)",
        "assert str(2 * V(1)) == 'V[2]'",
        "with V(1, 2) as v:\n    assert v.xs == [1, 2]\nassert v.xs == []",
        "assert V.zero(3).xs == [0, 0, 0] and V.name() == 'V'",
        "v = V(1)\nv.xs = [5]\nassert v.total == 5 and isinstance(v, V) and [x for x in v] == [5]",
    ],
    reference=VECTOR,
)
good(
    "classes-with-operators-and-no-reference",
    VECTOR,
    [
        "v = V(1, 2) + V(3, 4)\nassert v[0] == 4 and len(v) == 2 and v.total == 10 and 6 in v and v(4)",
        "assert str(2 * V(1)) == 'V[2]'",
        "with V(1, 2) as v:\n    assert v.xs == [1, 2]\nassert v.xs == []",
        "assert V.zero(3).xs == [0, 0, 0] and V.name() == 'V'",
        "v = V(1)\nv.xs = [5]\nassert v.total == 5 and isinstance(v, V) and [x for x in v] == [5]",
    ],
)
good(
    "a-stack-and-a-cache",
    """
from collections import OrderedDict
class LRU:
    def __init__(self, size): self.size, self.d = size, OrderedDict()
    def get(self, k):
        if k not in self.d: return -1
        self.d.move_to_end(k)
        return self.d[k]
    def put(self, k, v):
        self.d[k] = v
        self.d.move_to_end(k)
        if len(self.d) > self.size: self.d.popitem(last=False)
""",
    [
        "c = LRU(2)\nc.put(1, 1)\nc.put(2, 2)\nassert c.get(1) == 1\nc.put(3, 3)\nassert c.get(2) == -1 and c.get(3) == 3"
    ],
)
good(
    "attributes-with-underscores",
    """
class Node:
    def __init__(self, v): self._id, self._label, self._base, self._value, self._peer, self._sort = v, 'l', 2, 3, 4, 5
""",
    ["n = Node(1)\nassert (n._id, n._label, n._base, n._value, n._peer, n._sort) == (1, 'l', 2, 3, 4, 5)"],
)
good(
    "in-place",
    "def f(xs): xs.sort(); xs.append({'a': [1]})\n",
    ["xs = [3, 1]\nf(xs)\nassert xs == [1, 3, {'a': [1]}]"],
    inplace=True,
)
good(
    "in-place-inside",
    "def f(grid):\n    grid[0][0] = 9\n    return grid\n",
    ["row = [1]\ngrid = [row, [2]]\nassert f(grid) == [[9], [2]] and row == [9]"],
    inplace=True,
)
good(
    "reads-its-source-and-doc",
    'def f(x):\n    """Doubles."""\n    return 2 * x\n',
    ["assert f(1) == 2 and f.__doc__ == 'Doubles.'"],
)
good(
    "prints-a-lot",
    "import sys\ndef f(x):\n    print('x' * 100000)\n    sys.stderr.write('y' * 100000)\n    return 2 * x\n",
)
good(
    "writes-files",
    "def f(x):\n    with open('a.txt', 'w') as o: o.write(str(2 * x))\n    return int(open('a.txt').read())\n",
)
good(
    "imports-late-and-lazily",
    "def f(x):\n    import statistics, heapq, dataclasses, typing\n    return int(statistics.mean([2 * x]))\n",
)
good(
    "stdio-threads-and-recursion",
    """
import sys, threading
sys.setrecursionlimit(1 << 25)
threading.stack_size(1 << 27)
def main():
    def g(n): return 0 if n == 0 else 2 + g(n - 1)
    print(g(int(input())))
thread = threading.Thread(target=main)
thread.start()
thread.join()
""",
    [*STDIO, {"stdin": "20000\n", "stdout": "40000\n"}],
)
good(
    "stdio-fast-reading",
    """
import os, sys, io
data = os.read(0, os.fstat(0).st_size or 1 << 20)
sys.stdout = io.TextIOWrapper(open(1, 'wb', closefd=False), write_through=True)
print(2 * int(data))
""",
    STDIO,
)
good(
    "stdio-large-input",
    "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n",
    [{"stdin": "1 " * 400000, "stdout": "400000"}],
)
good("stdio-unread-input", "print(2)\n", [{"stdin": "x" * 1000000, "stdout": "2\n"}])
good("stdio-exit-in-except", "try:\n    print(2 * int(input()))\n    exit(0)\nexcept SystemExit:\n    raise\n", STDIO)
good(
    "stdio-global-and-main",
    """
total = 0
def add(n):
    global total
    total += n
if __name__ == '__main__':
    n = int(input())
    add(n); add(n)
    print(total, end='')
""",
    STDIO,
)
good("stdio-atexit", "import atexit\nn = int(input())\natexit.register(lambda: print(2 * n))\n", STDIO)
good(
    "stdio-input-variants",
    """
import sys
it = iter(sys.stdin.buffer)
n = int(next(it, b'0'))
print(f'{2 * n:>8}\\r')
""",
    STDIO,
)
good("file-right", RIGHT, None, test_code=FILE)
good(
    "file-class-with-equality",
    """
from dataclasses import dataclass
@dataclass(order=True)
class Money:
    cents: int
    def __add__(self, other): return Money(self.cents + other.cents)
""",
    None,
    test_code="""
from solution import Money
def test_equal():
    assert Money(1) + Money(2) == Money(3)
def test_order():
    assert sorted([Money(2), Money(1)])[0].cents == 1 and Money(1) < Money(2)
""",
    reference="from dataclasses import dataclass\n@dataclass(order=True)\nclass Money:\n    cents: int\n",
)

# ---- large values and outputs

good(
    "large-arguments-and-results",
    "def f(xs): return sorted(xs, reverse=True)\n",
    [
        "xs = list(range(10**6))\nassert f(xs) == xs[::-1]",
        "assert len(f('ab' * 5 * 10**5)) == 10**6",
        "assert f([(i, str(i)) for i in range(10**5)])[0] == (99999, '99999')",
    ],
    cpu_seconds=8,
)
good("large-text", "def f(x): return x * 2\n", ["assert f('x' * 3 * 10**6) == 'x' * 6 * 10**6", "assert f(1) == 2"])
good("large-output", "n = int(input())\nprint('y' * n)\n", [{"stdin": "9000000\n", "stdout": "y" * 9000000 + "\n"}])

# ---- habits of programs

good("stdio-devstdin", "n=int(open('/dev/stdin').read())\nopen('/dev/stdout','w').write(str(2*n))", STDIO)
good("stdio-devfd", "n=int(open('/dev/fd/0').read())\nprint(2*n, file=open('/proc/self/fd/1','w'))", STDIO)
good("stdio-exit-flush", "import os\nprint(2*int(input()),flush=True)\nos._exit(0)", STDIO)
good("stdio-closeout", "import sys\nprint(2*int(input()))\nsys.stdout.close()", STDIO)
good("stdio-closeout2", "import sys,os\nprint(2*int(input()))\nsys.stdout.flush()\nos.close(1)", STDIO)
good(
    "stdio-subproc",
    "import subprocess,sys\nn=int(input())\nprint(subprocess.run([sys.executable,'-c',f'print(2*{n})'],capture_output=True,text=True).stdout)",
    STDIO,
)
good("stdio-ossystem", "import os\nn=int(input())\nos.system(f'echo {2*n}')", STDIO)
good("stdio-echocat", "import subprocess\nn=int(subprocess.check_output(['cat']))\nprint(2*n)", STDIO)
good(
    "stdio-mp",
    "from multiprocessing import Pool\ndef g(x): return 2*x\nif __name__=='__main__':\n    with Pool(2) as p: print(p.map(g,[int(input())])[0])",
    STDIO,
)
good(
    "stdio-mpq",
    "from multiprocessing import Process, Queue\ndef g(q,x): q.put(2*x)\nif __name__=='__main__':\n    q=Queue(); p=Process(target=g,args=(q,int(input()))); p.start(); print(q.get()); p.join()",
    STDIO,
)
good("stdio-async", "import asyncio\nasync def main(): print(2*int(input()))\nasyncio.run(main())", STDIO)
good("stdio-argv", "import sys\nassert sys.argv[1:]==[]\nprint(2*int(input()))", STDIO)
good("stdio-file", "import os\nassert os.path.basename(__file__)\nprint(2*int(input()))", STDIO)
good("stdio-eofloop", "while True:\n    try: print(2*int(input()))\n    except EOFError: break", STDIO)
good(
    "stdio-ann",
    "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nprint(2*A(int(input())).x)",
    STDIO,
)
good(
    "stdio-pickle",
    "import pickle,copy\nclass A:\n    def __init__(s,x): s.x=x\na=pickle.loads(pickle.dumps(copy.deepcopy(A(int(input())))))\nprint(2*a.x)",
    STDIO,
)
good(
    "stdio-locale",
    "import locale,time,datetime,uuid,tempfile\nlocale.setlocale(locale.LC_ALL,'')\ntempfile.mkdtemp()\nprint(2*int(input()))",
    STDIO,
)
good(
    "stdio-thr",
    "import threading\nr=[]\ndef m(): r.append(2*int(input()))\nt=threading.Thread(target=m);t.start();t.join();print(*r)",
    STDIO,
)
good("stdio-warn", "import warnings\nwarnings.warn('x')\nprint(2*int(input()))", STDIO)
good("stdio-pipe", "import sys\nfor l in sys.stdin: print(2*int(l))", STDIO)
good("stdio-fileinput", "import fileinput\nfor l in fileinput.input(): print(2*int(l))", STDIO)
good(
    "stdio-selectin", "import select,sys\nselect.select([sys.stdin],[],[],1)\nprint(2*int(sys.stdin.readline()))", STDIO
)
good("stdio-isatty", "import sys\nassert not sys.stdin.isatty()\nprint(2*int(input()))", STDIO)
good("stdio-clos-in", "import sys\nn=int(sys.stdin.readline())\nsys.stdin.close()\nprint(2*n)", STDIO)
good("crlf", "def f(x):\r\n    return 2*x\r\n")
good("bomsrc", "\ufeffdef f(x):\n    return 2*x\n")
good("lambda", "f = lambda x: 2*x")
good("partial", "import functools,operator\nf = functools.partial(operator.mul, 2)")
good("callableobj", "class F:\n    def __call__(self,x): return 2*x\nf=F()")
good("method", "class F:\n    def g(self,x): return 2*x\nf=F().g")
good("builtin", "f = (2).__mul__")
good("cond", "if True:\n    def f(x): return 2*x")
good("tabs", "def f(x):\n\treturn 2*x")
good("formfeed", "\x0cdef f(x):\n    return 2*x")
good("cookie", "# -*- coding: latin-1 -*-\ndef f(x):\n    s = 'é'\n    return 2*x*len(s)")
good("longline", "x = [" + "1," * 200000 + "]\ndef f(x): return 2*x")
good("manyfuncs", "\n".join(f"def g{i}(x): return x" for i in range(20000)) + "\ndef f(x): return 2*x")
good("walrus", "def f(x):\n    if (n := 2*x) is not None: return n\n    match n:\n        case _: pass")
good(
    "typing",
    "from typing import *\nT=TypeVar('T')\nclass B(Generic[T]): pass\ndef f(x: Optional[int]) -> int: return 2*x",
)
good(
    "slots",
    "from dataclasses import dataclass\n@dataclass(slots=True,frozen=True)\nclass A:\n    x: int\ndef f(x): return A(x).x*2",
)
good("mainmod", "import sys\ndef f(x):\n    assert sys.modules[__name__].f is f\n    return 2*x")
good(
    "pick",
    "import pickle\nclass A:\n    pass\ndef f(x):\n    a=A(); a.x=x\n    return 2*pickle.loads(pickle.dumps(a)).x",
)
good(
    "mpf",
    "from concurrent.futures import ProcessPoolExecutor\ndef g(x): return 2*x\ndef f(x):\n    with ProcessPoolExecutor(2) as p: return list(p.map(g,[x]))[0]",
)
good(
    "mpf2",
    "from multiprocessing import Pool\ndef g(x): return 2*x\ndef f(x):\n    with Pool(2) as p: return p.map(g,[x])[0]",
)
good(
    "daemonthread",
    "import threading,time\ndef f(x):\n    threading.Thread(target=time.sleep,args=(100,),daemon=True).start()\n    return 2*x",
)
good(
    "nondaemon",
    "import threading,time\ndef f(x):\n    threading.Thread(target=time.sleep,args=(100,)).start()\n    return 2*x",
)
good(
    "fds",
    "import os\ndef f(x):\n    for _ in range(100):\n        try: os.open('/dev/null',0)\n        except OSError: break\n    return 2*x",
)
good(
    "urandom",
    "import os,random,secrets\ndef f(x):\n    secrets.token_hex(); os.urandom(8); random.random()\n    return 2*x",
)
good("sys-stdout-none", "import sys\nsys.stdout=None\nsys.stderr=None\ndef f(x):\n    print('x')\n    return 2*x")
good(
    "kw",
    "def f(*args, **kw): return 2*(args[0] if args else kw['x'])",
    ["assert f(1) == 2", "assert f(3) == 6", "assert f(10) == 20", "assert f(x=4) == 8"],
)
good(
    "numstr",
    "def f(x): return str(x)",
    ["assert f(10**50) == '1' + '0'*50", "assert f(2.5) == '2.5'", "assert f(None) == 'None'"],
)
good("setret", "def f(x): return {1,2,(3,4),frozenset({5})}", ["assert f(0) == {1,2,(3,4),frozenset({5})}"])
good(
    "nested",
    "def f(n):\n    r=[]\n    for _ in range(n): r=[r]\n    return r",
    ["assert f(3) == [[[[]]]]", "x = f(200)\nfor _ in range(200): x = x[0]\nassert x == []"],
)
good(
    "isinst",
    "class A: pass\nclass B(A): pass\ndef f(x): return B()",
    [
        "assert isinstance(f(1), A) and isinstance(f(1), B)",
        "assert type(f(1)).__name__ == 'B'",
        "assert issubclass(B, A)",
        "assert f(1) is not None",
        "assert f(1)",
    ],
)
good(
    "hasattr",
    "class A:\n    x = 1\n    def m(self): pass\ndef f(x): return A()",
    ["assert hasattr(f(1),'x') and not hasattr(f(1),'y') and callable(f(1).m)"],
)
good(
    "enumret",
    "from enum import Enum\nclass C(Enum):\n    R=1\n    G=2\ndef f(x): return C(x)",
    [
        "assert f(1) is C.R",
        "assert f(2) == C.G",
        "assert f(1) != C.G",
        "assert f(1).name == 'R' and f(1).value == 1",
        "assert f(2) in (C.R, C.G)",
        "assert {C.R: 1}[f(1)] == 1",
    ],
)
good(
    "ll",
    "class ListNode:\n    def __init__(self,val=0,next=None): self.val,self.next=val,next\ndef f(head):\n    p=None\n    while head: head.next,p,head=p,head,head.next\n    return p",
    ["h=ListNode(1,ListNode(2))\nr=f(h)\nassert r.val==2 and r.next.val==1 and r.next.next is None"],
)
good(
    "tree",
    "class T:\n    def __init__(s,v,l=None,r=None): s.v,s.l,s.r=v,l,r\ndef f(t): return 0 if t is None else 1+max(f(t.l),f(t.r))",
    ["assert f(T(1,T(2,T(3)),None)) == 3", "assert f(None) == 0"],
)
good("inplace-auto", "def f(a): a.reverse()", ["a=[1,2]\nf(a)\nassert a==[2,1]"])
good("ret-same", "def f(a):\n    a.append(1)\n    return a", ["a=[0]\nassert f(a)==[0,1]"])
good(
    "exc-attr",
    "class E(ValueError):\n    def __init__(self,code): self.code=code; super().__init__(f'code {code}')\ndef f(x): raise E(x)",
    [
        "try:\n    f(7)\nexcept ValueError as e:\n    assert e.code == 7 and str(e) == 'code 7' and e.args == ('code 7',)\nelse:\n    assert False"
    ],
)
good(
    "keyerr",
    "def f(d): return d['k']",
    [
        "import pytest\nwith pytest.raises(KeyError) as i:\n    f({})\nassert i.value.args[0] == 'k' and 'k' in str(i.value)"
    ],
)
good(
    "unicodeerr",
    "def f(b): return b.decode()",
    ["import pytest\nwith pytest.raises(UnicodeDecodeError):\n    f(b'\\xff')"],
)
good(
    "excgroup",
    "def f(x): raise ExceptionGroup('g',[ValueError(1)])",
    ["try:\n    f(1)\nexcept Exception as e:\n    assert type(e).__name__=='ExceptionGroup'"],
)
good(
    "jsondec",
    "import json\ndef f(s): return json.loads(s)",
    ["import json, pytest\nwith pytest.raises(json.JSONDecodeError):\n    f('{')"],
)
good(
    "datetime",
    "from datetime import *\ndef f(x): return datetime(2020,1,1,tzinfo=timezone.utc)+timedelta(days=x)",
    ["from datetime import datetime, timezone\nassert f(1)==datetime(2020,1,2,tzinfo=timezone.utc)"],
)
good(
    "path",
    "from pathlib import Path\ndef f(x): return Path('/a')/x",
    [
        "from pathlib import Path\nassert str(f('b'))=='/a/b'",
        "from pathlib import Path\nassert f('b')==Path('/a/b')",
        "assert f('b').name=='b'",
    ],
)
good(
    "regex",
    "import re\ndef f(x): return re.match('(a)',x)",
    ["assert f('a').group(1)=='a'", "assert f('b') is None", "assert f('a')"],
)
good("compl", "def f(x): return complex(x,-0.0)", ["assert f(1)==1"])
good(
    "bytesio",
    "import io\ndef f(x): return io.StringIO(x)",
    ["assert f('ab').read()=='ab'", "assert [l for l in f('a\\nb')]==['a\\n','b']"],
)
good(
    "array",
    "from array import array\ndef f(x): return array('i',[x])",
    [
        "assert list(f(1))==[1]",
        "assert f(1)[0]==1 and len(f(1))==1",
        "from array import array\nassert f(1)==array('i',[1])",
    ],
)
good("memview", "def f(x): return memoryview(b'ab')", ["assert bytes(f(1))==b'ab'", "assert f(1)[0]==97"])
good(
    "strsub",
    "class S(str): pass\ndef f(x): return S('ab')",
    [
        "assert f(1)=='ab' and f(1).upper()=='AB' and len(f(1))==2 and f(1)+'c'=='abc' and 'a' in f(1) and f'{f(1)}'=='ab' and f(1)[0]=='a' and f(1).startswith('a')"
    ],
)
good(
    "isinstbase",
    "class S(str): pass\nclass L(list): pass\ndef f(x): return [S('a'),L([1])][x]",
    ["assert isinstance(f(0), str)", "assert isinstance(f(1), list)"],
)
good(
    "ntisinst",
    "from collections import namedtuple\nP=namedtuple('P','x y')\ndef f(x): return P(x,x)",
    [
        "assert isinstance(f(1), tuple)",
        "assert f(1)._asdict()=={'x':1,'y':1}",
        "assert f(1)==P(1,1)",
        "assert [*f(2)]==[2,2] and sorted([f(2),f(1)])[0]==(1,1)",
        "assert {f(1)}=={(1,1)}",
    ],
)

# ---- threads and coroutines

good(
    "callbacks-from-threads",
    """
from concurrent.futures import ThreadPoolExecutor
def f(g, xs):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(g, xs))
""",
    [
        "assert f(lambda x: x * x, range(50)) == [x * x for x in range(50)]",
        "seen = []\nf(seen.append, range(9))\nassert sorted(seen) == list(range(9))",
    ],
)
good(
    "coroutines",
    """
import asyncio
async def f(x):
    await asyncio.sleep(0.01)
    if x < 0: raise ValueError('negative')
    return 2 * x
class Box:
    async def get(self, x): return await f(x)
""",
    [
        "import asyncio\nassert asyncio.run(f(1)) == 2",
        "import asyncio\nasync def main():\n    return await asyncio.gather(f(1), f(2))\nassert asyncio.run(main()) == [2, 4]",
        "import asyncio, pytest\nwith pytest.raises(ValueError, match='negative'):\n    asyncio.run(f(-1))",
        "import asyncio\nassert asyncio.get_event_loop_policy().new_event_loop().run_until_complete(Box().get(3)) == 6",
    ],
)
good(
    "beside-the-tests",
    "def f(x):\n    print('here')\n    return 2 * x\n",
    None,
    test_code="from solution import f\ndef test_f(capsys, tmp_path):\n    assert f(1) == 2\n    assert capsys.readouterr().out == 'here\\n'\n",
)

# ---- used by tests as objects are

good(
    "a-thread-from-the-start",
    """
import queue, threading
asked, given = queue.Queue(), queue.Queue()
def work():
    while True: given.put(2 * asked.get())
threading.Thread(target=work, daemon=True).start()
def f(x):
    asked.put(x)
    return given.get()
""",
)
good(
    "a-pool-from-the-start",
    "from multiprocessing.pool import ThreadPool\npool = ThreadPool(2)\ndef f(x): return pool.apply(lambda: 2 * x)\n",
)
good(
    "children-appended-by-the-test",
    """
class Node:
    def __init__(self, value):
        self.value, self.children = value, []
def total(node): return node.value + sum(map(total, node.children))
""",
    [
        "root = Node(1)\nroot.children.append(Node(2))\nroot.children[0].children.append(Node(3))\nassert total(root) == 6",
        "root = Node(1)\nroot.children += [Node(4)]\nassert total(root) == 5 and len(root.children) == 1",
    ],
)
good(
    "a-dict-filled-by-the-test",
    "class G:\n    def __init__(self): self.adj = {}\n    def size(self): return sum(map(len, self.adj.values()))\n",
    [
        "g = G()\ng.adj['a'] = []\ng.adj['a'].append('b')\nassert g.size() == 0 or g.size() == 1\ng.adj['a'] = ['b']\nassert g.size() == 1"
    ],
)
good(
    "changes-what-it-was-given",
    "def f(q, named=None):\n    q.rotate(1)\n    if named is not None: named.sort()\n",
    [
        "from collections import deque\nq = deque([1, 2, 3])\nf(q)\nassert list(q) == [3, 1, 2]",
        "from collections import deque\nq, xs = deque([1]), [2, 1]\nf(q, named=xs)\nassert xs == [1, 2]",
    ],
)
good(
    "a-counter-changed-in-place",
    "def f(c): c['a'] += 1\n",
    [
        "from collections import Counter, defaultdict\nfor c in (Counter(), defaultdict(int)):\n    f(c)\n    assert c['a'] == 1"
    ],
)
good(
    "a-method-that-sorts",
    "class S:\n    def sort(self, xs): xs.sort()\n",
    ["xs = [2, 1]\nS().sort(xs)\nassert xs == [1, 2]"],
)
good(
    "copies-of-an-object",
    "class P:\n    def __init__(self, xs): self.xs = xs\n    def add(self, x): self.xs.append(x)\n",
    [
        "import copy\np = P([1])\nq = copy.deepcopy(p)\nq.add(2)\nassert p.xs == [1] and q.xs == [1, 2]\nassert copy.copy(p).xs == [1]"
    ],
)
good(
    "suppresses-what-it-says",
    "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, kind, *rest): return kind is ValueError\n",
    [
        "with Quiet():\n    int('x')\nassert True",
        "done = []\nwith Quiet():\n    done.append(1)\n    raise ValueError\nassert done == [1]",
    ],
)
good(
    "a-class-with-in-and-plus",
    """
class Money:
    def __init__(self, n): self.n = n
    def __add__(self, other): return Money(self.n + other)
    def __contains__(self, coin): return coin <= self.n
    @classmethod
    def of(cls, text): return cls(int(text))
""",
    ["assert ((Money(1) + 2) + 3).n == 6", "assert (Money.of('4') + 1).n == 5 and 3 in Money.of('4')"],
)
good(
    "an-own-sequence",
    """
class Row:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        if i >= self.n: raise IndexError
        return 2 * i
    def __iter__(self): return (2 * i for i in range(self.n))
def f(n): return Row(n)
""",
    ["r = f(3)\nassert len(r) == 3 and list(r) == [0, 2, 4] and [*r] == [0, 2, 4] and r[1] == 2 and sum(r) == 6"],
)
good(
    "helpers-of-the-test",
    "def f(x): return 2 * x\n",
    [
        "def twice(g, x): return g(g(x))\nclass Box:\n    def __init__(self, v): self.v = v\nassert Box(twice(f, 1)).v == 4"
    ],
)
good(
    "texts-of-errors",
    "import json\ndef f(x): return json.loads(x) if x else open('/nowhere')\n",
    [
        "import pytest\nwith pytest.raises(ValueError, match='Expecting value'):\n    f('{')\n".replace("'{'", "'[1,'"),
        "try: f('')\nexcept FileNotFoundError as e: assert 'No such file' in str(e)\nelse: assert False",
    ],
)
good(
    "printed-and-caught",
    "def f(x): print(2 * x)\n",
    [
        "import contextlib, io\nout = io.StringIO()\nwith contextlib.redirect_stdout(out): f(1)\nassert out.getvalue() == '2\\n'"
    ],
)
good(
    "a-file-between-them",
    "def f(path): return 2 * int(open(path).read())\n",
    ["with open('/tmp/n', 'w') as file: file.write('3')\nassert f('/tmp/n') == 6"],
)
good(
    "its-own-source",
    "import inspect\ndef f(x):\n    return 2 * x if 'return' in inspect.getsource(f) else 0\n",
)
good(
    "deep-lists",
    "def f(n):\n    out = []\n    for _ in range(n): out = [out]\n    return out\n",
    [
        "x, n = f(500), 0\nwhile x:\n    x, n = x[0], n + 1\nassert n == 500",
        "assert f(450) == f(450) and f(450) != f(451)",
    ],
)
good(
    "set-up-for-a-module",
    "def f(x): return 2 * x\n",
    None,
    test_code="from solution import f\nDATA = []\ndef setup_module(): DATA.append(1)\ndef setup_function(): DATA.append(2)\n"
    "def test_f(): assert f(DATA[0]) == 2 and DATA == [1, 2]\n",
)
