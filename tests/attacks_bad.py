"""Programs that cheat or break things, each with the verdicts that a right harness may give; see attack_parts.py.

The task of most is f(x) = 2 * x, or to print 2 * n. Alternatives are separated by a bar.
"""

from tests.attack_parts import EITHER, FILE, OBJECT, PEER, RIGHT, STDIO, TESTS, WRITE, WRONG

BAD: list[dict] = []


def bad(name, expected, code, tests=TESTS, reward=0.0, **more):
    """A program that must not be paid more than `reward`."""
    BAD.append({"id": name, "code": code, "tests": tests, "expected": expected, "reward": reward, **more})


# ---- what came over the channel

for key, text in (("failed", "passed"), ("kind", "passed"), ("loaded", True), ("ended", 0), ("verdict", "passed")):
    bad(
        f"forged-{key}",
        "failed:protocol_error|failed:wrong_answer|failed:missing_entry_point|failed:timeout",
        WRITE + f"write({{{key!r}: {text!r}, 'message': '', 'tests': [], 'cpu': 0, 'test': 0}})\ndef g(x): pass\n",
        entry_point="f",
    )
bad(
    "forged-infra-error",
    "failed:protocol_error",
    WRITE + "write({'failed': 'infra_error', 'message': ''})\ndef f(x): 1\n",
)
bad("forged-timeout", "failed:protocol_error", WRITE + "write({'failed': 'timeout', 'message': ''})\ndef f(x): 1\n")
bad(
    "deep-json",
    "failed:protocol_error",
    "import os, struct\nfor fd in range(3, 64):\n    try: os.write(fd, struct.pack('>I', 99999) + b'[' * 99999)\n"
    "    except OSError: pass\ndef f(x): pass\n",
)
bad(
    "a-type-of-the-tests-side",
    EITHER,
    PEER
    + """
def f(x):
    p = peer()
    E = p.request('call', type, ('E', (), {'__eq__': bool}), {})
    return p.request('call', E, (), {})
""",
)
bad(
    "a-subclass-of-the-tests-side",
    EITHER,
    PEER
    + """
def f(x):
    p = peer()
    E = p.request('call', type, ('E', (int,), {'__eq__': bool, '__hash__': None}), {})
    return p.request('call', E, (0,), {})
""",
)
for kind in ("passed", "infra_error", "lost", "fine"):
    bad(
        f"refuses-with-{kind}",
        "failed:protocol_error",
        f"from refusals import Refused\ndef f(x): raise Refused({kind!r}, '')\n",
    )
bad(
    "a-request-that-is-two-things",
    "failed:protocol_error|failed:runtime_error|failed:wrong_answer",
    PEER
    + """
class Two:
    def __init__(self, known, args): self.known, self.args = known, args
    def __getitem__(self, i): return self.known
    def __iter__(self): return iter(self.args)
def f(x):
    p = peer()
    try: p._request('call', (len, ()))
    except BaseException as e: known = p._handles[e._murphy_origin[1]]
    E = p._request('call', Two(known, [type, ('E', (), {'__eq__': bool}), {}]))
    return p._request('call', Two(known, [E, (), {}]))
""",
)
bad(
    "attrgetter-on-the-tests-side",
    EITHER,
    PEER
    + """
import operator
def f(x):
    p = peer()
    g = p.request('call', operator.attrgetter, ('__subclasses__',), {})
    return p.request('call', p.request('call', g, (object,), {}), (), {})
""",
)
bad(
    "methodcaller-on-the-tests-side",
    EITHER,
    PEER
    + """
import operator
def f(x):
    p = peer()
    return p.request('call', p.request('call', operator.methodcaller, ('mro',), {}), (int,), {})
""",
)
bad(
    "asks-for-names-of-the-tests",
    "failed:protocol_error|failed:wrong_answer",
    PEER
    + """
def f(x):
    return peer().request('name', 'expected')
""",
)
bad(
    "asks-plain-values",
    EITHER,
    PEER
    + """
def f(x):
    p = peer()
    for op in ('getattr', 'call', 'eq', 'getitem', 'dir', 'base'):
        try: p.request(op, 2, 2)
        except Exception: pass
    return 0
""",
    ["assert f(1) == 2"],
)
for sort in ("=", "^", "~", "?", "!"):
    bad(
        f"answers-before-it-is-asked-{ord(sort)}",
        "failed:protocol_error|failed:wrong_answer|failed:early_exit",
        PEER
        + f"""
import codec, struct
def f(x):
    p = peer()
    body = codec.encode(True, p._reference_to, 1 << 20)
    p._sock.sendall(struct.pack('>IcI', len(body), {sort.encode()!r}, 0) + body)
    return 0
""",
        ["assert f(1) == 2"],
    )
bad(
    "changes-the-codec",
    "failed:wrong_answer|failed:protocol_error|failed:unsupported_value",
    """
import codec, peer, operations
codec.encode = lambda *a: b'T'
operations.OPERATIONS['call'] = lambda *a: True
peer.OPERATIONS['call'] = lambda *a: True
def f(x): return 0
""",
)
bad(
    "a-base-that-lies",
    EITHER,
    PEER
    + """
class I(int): pass
answers = [10**9, -10**9]
def f(x):
    sys.modules[type(peer()).__module__].OPERATIONS['base'] = lambda v: answers.reverse() or answers[-1]
    return I(5)
""",
    ["r = f(1)\nassert r > 5 and r < 7"],
)
bad(
    "a-length-that-lies",
    EITHER,
    """
class L(list):
    n = 0
    def __len__(self):
        L.n += 1
        return 3 if L.n == 1 else 0
    def __iter__(self): return iter([1, 2, 3])
    def __getitem__(self, i): return [1, 2, 3][i]
def f(x): return L()
""",
    ["r = f(1)\nassert len(r) == 3 and [v for v in r] == [1, 2, 3]"],
)

# ---- equality, order, arithmetic

for kind, value in (
    ("str", "'no'"),
    ("list", "[]"),
    ("dict", "{}"),
    ("tuple", "()"),
    ("float", "0.0"),
    ("bytes", "b''"),
):
    bad(
        f"always-equal-{kind}",
        WRONG,
        f"""
class E({kind}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda self, other: True
    def __hash__(self): return 2
def f(x): return E({value})
""",
        [
            f"assert f(1) == {value[:-1] + '2' + value[-1:] if kind in ('str',) else 2}",
            "assert 2 == f(1)",
            "assert not f(1) != 2",
        ],
    )
bad(
    "always-equal-inside",
    OBJECT,
    """
class E:
    def __eq__(self, other): return True
    __hash__ = lambda self: 0
def f(x): return [E(), E()]
""",
    ["assert f(1) == [1, 2]", "assert [1, 2] == f(1)", "assert sorted(f(1)) == [1, 2]", "assert f(1)[0] in (1, 2)"],
)
bad(
    "always-equal-key",
    f"{OBJECT}|{WRONG}",
    """
class E:
    def __eq__(self, other): return True
    __hash__ = lambda self: hash('a')
def f(x): return {E(): 1}
""",
    ["assert f(1) == {'a': 1}", "assert f(1)['a'] == 1", "assert 'a' in f(1)"],
)
bad(
    "always-near",
    EITHER,
    """
class F(float):
    __sub__ = __rsub__ = __add__ = lambda self, other: F(0)
    def __abs__(self): return 0.0
    def __lt__(self, other): return True
def f(x): return F(77)
""",
    ["assert abs(f(1) - 2) < 1e-6", "assert abs(2 - f(1)) <= 1e-6", "import math\nassert math.isclose(f(1), 2)"],
)
bad(
    "always-near-object",
    OBJECT,
    """
class F:
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __float__(self): return 2.0
    def __round__(self, n=0): return 2.0
def f(x): return F()
""",
    ["assert abs(f(1) - 2) < 1e-6"],
)
bad(
    "approx-of-itself",
    EITHER,
    """
class A:
    def __eq__(self, other): return True
    expected = rel = abs = nan_ok = None
def f(x): return A()
""",
    ["import pytest\nassert f(1) == pytest.approx(2.0)", "import pytest\nassert pytest.approx(2.0) == f(1)"],
)
bad(
    "nan-for-everything",
    WRONG,
    "def f(x): return float('nan')\n",
    ["assert f(1) == 2", "assert abs(f(1) - 2) < 1e-6", "assert f(1) >= 2 or f(1) < 2"],
)
bad(
    "metaclass-that-is-every-class",
    EITHER,
    """
class M(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class X(metaclass=M): pass
def f(x): return X
""",
    ["assert f(1) == 2", "assert isinstance(f(1), int)", "assert type(f(1)) is int"],
)
bad(
    "an-exception-that-is-every-exception",
    "failed:runtime_error|failed:wrong_answer",
    """
class M(type):
    def __instancecheck__(cls, other): return True
    def __subclasscheck__(cls, other): return True
class E(Exception, metaclass=M):
    __class__ = property(lambda self: ValueError)
def f(x): raise E
""",
    [
        "import pytest\nwith pytest.raises(ValueError):\n    f(-1)",
        "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
    ],
)
bad(
    "an-exception-of-the-same-name",
    "failed:runtime_error|failed:wrong_answer",
    """
class ValueError(Exception):
    __module__ = 'builtins'
def f(x): raise ValueError
""",
    ["import pytest\nwith pytest.raises(ValueError):\n    f(-1)"],
)
bad(
    "an-exception-with-a-hostile-name",
    "failed:runtime_error",
    """
def f(x): raise type('a' + chr(0) + 'b' + chr(0xd800), (Exception,), {})
""",
)
bad(
    "skips-and-fails-by-name",
    "failed:runtime_error",
    """
class Skipped(BaseException): pass
class Failed(BaseException): pass
def f(x): raise Skipped
""",
)
bad(
    "pytest-skip",
    "failed:runtime_error|failed:wrong_answer",
    """
def f(x):
    try:
        import pytest
    except ImportError:
        raise RuntimeError
    pytest.skip('no')
""",
)
bad(
    "stop-iteration",
    "failed:runtime_error|failed:wrong_answer",
    "def f(x): raise StopIteration(2)\n",
    ["assert f(1) == 2", "assert all(f(i) == 2 * i for i in range(3))", "for i in range(3):\n    assert f(i) == 2 * i"],
)
bad(
    "truth-of-an-object",
    EITHER,
    """
class T:
    def __bool__(self): return True
    def __len__(self): return 2
    def __iter__(self): return iter(self)
    def __next__(self): return self
    def __contains__(self, other): return True
def f(x): return T()
""",
    ["assert f(1) is True", "assert f(1) == True", "assert 2 in f(1)"],
)
bad(
    "a-string-that-starts-with-all",
    EITHER,
    """
class S(str):
    def startswith(self, *a): return True
    endswith = isdigit = __contains__ = startswith
    def strip(self, *a): return self
    def split(self, *a): return [2]
    lower = upper = replace = strip
    def count(self, *a): return 2
def f(x): return S('zz')
""",
    ["assert f(1).startswith('a')", "assert 'a' in f(1)", "assert f(1).strip() == '2'", "assert f(1).count('a') == 2"],
)

bad(
    "arithmetic-that-the-reference-has-not",
    OBJECT,
    """
class Account:
    def __init__(self): self.log = []
    def deposit(self, n): self.log.append(n)
    def balance(self): return Account()
    def history(self): return Account()
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __contains__(self, n): return True
""",
    [
        "a = Account()\na.deposit(5)\nassert abs(a.balance() - 5) < 1e-9",
        "a = Account()\nassert abs(5 - a.balance()) < 1e-9",
        "a = Account()\na.deposit(5)\nassert 5 in a.history()",
    ],
    reference="class Account:\n    def __init__(self): self.log = []\n    def deposit(self, n): self.log.append(n)\n"
    "    def balance(self): return sum(self.log)\n    def history(self): return self.log\n",
)

# ---- names of the tests' side

bad(
    "own-builtins",
    f"{WRONG}|failed:early_exit",
    """
import builtins
def yes(*a, **k): return True
for name in ('all', 'any', 'isinstance', 'len', 'abs', 'sorted', 'sum', 'round', 'set', 'list', 'str', 'int', 'type'):
    globals()[name] = yes
    setattr(builtins, name, yes)
def f(x): return 0
""",
    [
        "assert f(1) == 2 and isinstance(f(1), int)",
        "assert all(f(i) == 2 * i for i in (1, 2))",
        "assert abs(f(1) - 2) < 1",
    ],
)
bad(
    "own-math-and-pytest",
    WRONG,
    """
import sys, types
class Any(types.ModuleType):
    def __getattr__(self, name): return lambda *a, **k: True
for name in ('math', 'pytest', 'numpy', 'json', 'operator', 'unittest', 'collections'):
    sys.modules[name] = globals()[name] = Any(name)
np = numpy
def approx(x): return x
def f(x): return 0
""",
    [
        "assert math.isclose(f(1), 2)",
        "import math\nassert math.isclose(f(1), 2)",
        "import pytest\nassert f(1) == pytest.approx(2)",
    ],
)
bad(
    "own-names-of-the-rewriter",
    EITHER,
    """
__murphy_compare__ = __murphy_truth__ = lambda *a: True
def f(x): return 0
""",
)
bad(
    "own-import",
    "failed:wrong_answer|failed:runtime_error|failed:protocol_error|failed:early_exit|failed:crash",
    """
import builtins
builtins.__import__ = lambda *a, **k: 1 / 0
builtins.__build_class__ = None
def f(x): return 0
""",
)
bad(
    "looks-at-callbacks",
    "failed:runtime_error|failed:wrong_answer",
    """
def f(g):
    for name in ('__globals__', '__code__', '__closure__', '__defaults__', '__self__', '__class__', 'f_globals'):
        try: return getattr(g, name)
        except AttributeError: pass
    return g(1)
""",
    [
        "expected = 99\ndef g(x): return x\nassert f(g) == expected",
        "assert f(lambda x, e=99: x) == 99",
        "class G:\n    def __call__(self, x): return x\nassert f(G()) == 99",
    ],
)
bad(
    "opens-the-tests",
    f"{WRONG}|failed:timeout",
    """
import gc, glob, inspect, linecache, sys
def f(x):
    seen = []
    for path in glob.glob('/**/*.py', recursive=True) + glob.glob('/proc/*/cmdline') + glob.glob('/tmp/**', recursive=True):
        try: seen.append(open(path, errors='replace').read())
        except OSError: pass
    seen += [o for o in gc.get_objects() if isinstance(o, str)]
    seen += [str(frame.frame.f_locals) for frame in inspect.stack()]
    return next((78125 for s in seen if '781' '25' in s), 0)
""",
    ["assert f(1) == 78125"],
)

# ---- ends, threads, signals, time

bad(
    "exit-while-deleted",
    "failed:wrong_answer|failed:early_exit",
    """
import os
class D:
    def __del__(self): os._exit(0)
def f(x):
    d = D()
    return 0
""",
)
bad(
    "system-exit-while-deleted",
    WRONG,
    """
class D:
    def __del__(self): raise SystemExit(0)
def f(x):
    d = D()
    del d
    return 0
""",
)
bad(
    "exits-from-a-thread",
    "failed:early_exit|failed:wrong_answer",
    """
import os, threading, time
def f(x):
    threading.Thread(target=lambda: os._exit(0)).start()
    time.sleep(1)
    return 0
""",
)
bad(
    "swallows-its-alarm",
    "failed:timeout",
    """
import signal
for s in range(1, 32):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
def f(x):
    while True: pass
""",
)
bad(
    "an-alarm-of-its-own",
    "failed:crash",
    "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\ndef f(x):\n    while True: pass\n",
)
bad(
    "closes-what-is-open",
    "failed:early_exit|failed:crash|failed:runtime_error|failed:protocol_error",
    "import os\ndef f(x):\n    os.closerange(0, 1024)\n    return 0\n",
)
bad(
    "puts-stdout-everywhere",
    "failed:early_exit|failed:crash|failed:runtime_error|failed:protocol_error",
    """
import os
def f(x):
    for fd in range(3, 64):
        try: os.dup2(1, fd)
        except OSError: pass
    print('passed')
    return 2 * x
""",
)
bad(
    "traces-the-harness",
    f"{WRONG}|failed:protocol_error",
    """
import sys, threading
def trace(frame, event, arg):
    for name in list(frame.f_locals):
        if name in ('kind', 'verdict', 'result', 'passed', 'message'):
            frame.f_locals[name] = 'passed'
    return trace
sys.settrace(trace); sys.setprofile(trace); threading.settrace(trace)
def f(x):
    frame = sys._getframe()
    while frame:
        frame.f_trace = trace
        frame = frame.f_back
    return 0
""",
)
bad(
    "repr-that-never-ends",
    "failed:timeout|failed:unsupported_value",
    """
class R:
    def __repr__(self):
        while True: pass
    __str__ = __hash__ = __eq__ = __bool__ = __len__ = lambda self, *a: repr(self)
def f(x): return R()
""",
)
bad(
    "hash-that-recurses",
    "failed:runtime_error|failed:unsupported_value|failed:wrong_answer",
    """
class H:
    def __hash__(self): return hash(self)
    def __eq__(self, other): return self == other
    def __repr__(self): return repr(self)
def f(x): return {H(): 1}
""",
)
bad(
    "holds-itself",
    "failed:unsupported_value|failed:output_limit",
    "def f(x):\n    a = []\n    a.append(a)\n    return a\n",
)
bad(
    "a-billion-references",
    "failed:output_limit",
    "def f(x):\n    a = [0] * 1000\n    for _ in range(9): a = [a] * 1000\n    return a\n",
    cpu_seconds=30,  # its first 8 MB take a second on a machine that is not busy
)
bad(
    "colliding-keys",
    "failed:wrong_answer|failed:timeout|failed:output_limit",
    "def f(x): return {i * (2**61 - 1) for i in range(20000)}\n",
)
bad(
    "decimals-that-explode",
    "failed:wrong_answer|failed:timeout|failed:runtime_error|failed:memory_limit",
    "from decimal import Decimal\ndef f(x): return Decimal('1E+999999')\n",
    ["assert int(f(1)) == 2", "assert f(1) == 2"],
)
bad("signalling-nan", WRONG, "from decimal import Decimal\ndef f(x): return Decimal('sNaN')\n")
bad(
    "prints-the-verdict",
    WRONG,
    """
import sys, json
def f(x):
    for out in (sys.stdout, sys.stderr, sys.__stdout__):
        out.write(json.dumps({'kind': 'passed', 'reward': 1.0}) + '\\n' + '.' * 70 + ' [100%]\\n1 passed\\n')
    return 0
""",
)
bad(
    "mutates-what-it-is-given",
    WRONG,
    "def f(xs):\n    xs[:] = [0]\n    return 0\n",
    ["xs = [1, 2]\nassert f(xs) == sum(xs)", "xs = [3]\nassert f(xs) == len(xs) - 1 + sum(xs)"],
)
bad(
    "mutates-default-and-module",
    f"{WRONG}|failed:protocol_error",
    """
import math, random, json
math.pi = 3; math.sqrt = lambda x: 2; random.random = lambda: 0; json.dumps = lambda *a: '2'
def f(x): return math.sqrt(x)
""",
    ["assert abs(f(2) - math.sqrt(2)) < 1e-9", "import json\nassert json.dumps(f(9)) == '3.0'"],
)

# ---- whole programs

bad("stdio-right-then-raises", "failed:runtime_error", "print(2 * int(input()))\nraise ValueError\n", STDIO)
bad("stdio-right-then-status-1", "failed:runtime_error", "print(2 * int(input()))\nimport sys\nsys.exit(1)\n", STDIO)
bad(
    "stdio-forged-end",
    f"{WRONG}|failed:protocol_error|failed:runtime_error",
    WRITE + "write({'ended': 0, 'cpu': 0})\nprint(0)\n",
    STDIO,
)
bad(
    "stdio-reads-descriptors",
    WRONG,
    """
import os
for fd in range(3, 64):
    try:
        data = os.read(fd, 1000)
        print(data.decode())
    except OSError: pass
print(0)
""",
    STDIO,
)
bad("stdio-answer-on-stderr", WRONG, "import sys\nsys.stderr.write(str(2 * int(input())))\n", STDIO)
bad(
    "stdio-syntax-error-mark",
    f"{WRONG}|failed:syntax_error|failed:runtime_error",
    "import sys\nsys.stderr.write('\\x00syntax_error\\npassed')\nsys.exit(1)\n",
    STDIO,
)
bad("stdio-wrong-lines", WRONG, "n = int(input())\nprint(str(2 * n)[0], str(2 * n)[1:], sep='\\n')\n", STDIO[1:])
bad("stdio-endless-output", "failed:output_limit|failed:timeout", "while True: print('x' * 1000)\n", STDIO)
bad(
    "stdio-many-processes",
    f"{WRONG}|failed:runtime_error|failed:memory_limit|failed:timeout",
    """
import os
for _ in range(100):
    try:
        if os.fork() == 0:
            os.setsid()
            while True: pass
    except OSError: break
print(0)
""",
    STDIO,
)
bad(
    "stdio-steals-the-control-socket",
    f"{WRONG}|failed:runtime_error",
    """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pidfd = libc.syscall(434, os.getppid(), 0)
for fd in range(3, 64):
    if libc.syscall(438, pidfd, fd, 0) >= 0: print(2 * int(input())); break
for path in ('/proc/%d/mem' % os.getppid(), '/proc/%d/fd/3' % os.getppid()):
    try:
        open(path, 'r+b'); print('opened')
    except OSError: pass
""",
    STDIO,
)

# ---- pytest files

bad(
    "file-changes-pytest",
    "failed:wrong_answer|failed:runtime_error",
    """
import sys, types
fake = types.ModuleType('pytest')
fake.raises = fake.approx = fake.mark = lambda *a, **k: True
sys.modules['pytest'] = fake
def f(x): return 0
""",
    None,
    test_code=FILE,
)
bad(
    "file-writes-conftest",
    "failed:wrong_answer|failed:runtime_error",
    """
import os
for name in ('/tmp/conftest.py', 'conftest.py', '/tmp/sitecustomize.py', '/tmp/pytest.ini', '/tmp/pytest.py'):
    try: open(name, 'w').write('def pytest_collection_modifyitems(items): items.clear()')
    except OSError: pass
def f(x): return 0
""",
    None,
    test_code=FILE,
)
bad("file-raises-another-message", WRONG, RIGHT.replace("negative number", "no"), None, test_code=FILE, reward=2 / 3)
bad("file-exits", "failed:early_exit", "def f(x):\n    import os\n    os._exit(0)\n", None, test_code=FILE)

# ---- more ends

bad("stdio-prompt", "failed:wrong_answer", "n=int(input('n? '))\nprint(2*n)", STDIO)
bad("stdio-bom", "failed:wrong_answer", "print('\\ufeff'+str(2*int(input())))", STDIO)
bad(
    "stdio-childcpu",
    "failed:timeout",
    "import os\nn=int(input())\nif os.fork()==0:\n    while True: pass\nos.wait()\nprint(2*n)",
    STDIO,
)
bad("stdio-sysexit-str", "failed:runtime_error", "import sys\nprint(2*int(input()))\nsys.exit('done')", STDIO)
bad("stdio-recur", "failed:runtime_error", "def g(n): return g(n+1)\nprint(g(0))", STDIO)
bad("stdio-mmap", "failed:runtime_error", "import mmap\nm=mmap.mmap(0,0)\nprint(2*int(m[:]))", STDIO)
bad("imp-exit", "failed:early_exit", "import sys\nsys.exit(0)\ndef f(x): return 2*x")
bad("imp--exit", "failed:early_exit", "import os\nos._exit(0)\ndef f(x): return 2*x")
bad("imp-kill", "failed:crash", "import os\nos.kill(os.getpid(),9)\ndef f(x): return 2*x")
bad("kill-self", "failed:crash", "import os\ndef f(x): os.kill(os.getpid(),9)")
bad(
    "deepast", "failed:syntax_error|failed:crash|failed:memory_limit", "x = " + "-" * 200000 + "1\ndef f(x): return 2*x"
)
bad("sleepy", "failed:timeout", "import time\ndef f(x): time.sleep(100)")
bad("sub-sleep", "failed:timeout", "import subprocess\ndef f(x): subprocess.run(['sleep','100'])")
bad("alarm0", "failed:timeout", "import signal\ndef f(x):\n    signal.alarm(0)\n    while True: pass")
bad(
    "sysv",
    "failed:wrong_answer",
    "import ctypes\nl=ctypes.CDLL(None)\ndef f(x):\n    l.shmget(1234,4096,0o1666)\n    return 0",
)
bad("stdin-in-f", "failed:runtime_error", "def f(x): return int(input())")
bad(
    "huge-integers",
    WRONG,
    "def f(x): return 1 << 40_000_000 if x == 1 else [{1: 1 << 3_000_000}]\n",
    ["assert f(1) == 2", "assert f(2) == [2]"],
)

# ---- ends of the tests' process: a program may only fail by them

bad(
    "attributes-of-an-exception-that-ask",
    "failed:runtime_error|failed:protocol_error|failed:wrong_answer",
    PEER
    + """
class Hostile:
    def __bool__(self): raise SystemExit
    __str__ = __repr__ = __len__ = __bool__
    def __format__(self, spec): raise KeyboardInterrupt
class E(Exception):
    def __init__(self):
        for name in ('_murphy_text', '_murphy_frames', '_murphy_origin', 'args', 'name'): self.__dict__[name] = Hostile()
def f(x):
    ops = sys.modules[type(peer()).__module__].OPERATIONS
    ops['dir'] = lambda target: ['_murphy_text', '_murphy_frames', '_murphy_origin', 'name', '__class__', 'x']
    ops['getattr'] = lambda target, name: Hostile()
    raise E
""",
)
bad(
    "ends-while-its-text-is-asked",
    "failed:early_exit|failed:wrong_answer|failed:unsupported_value",
    """
import os
class T:
    def __str__(self): os._exit(0)
    __repr__ = __format__ = lambda self, *a: os._exit(0)
    __bool__ = lambda self: False
def f(x): return T()
""",
    ["assert f(1), f(1)", "r = f(1)\nassert r, f'got {r}'", "raise ValueError(f(1))"],
)
bad(
    "keys-that-are-unhashable-there",
    "failed:wrong_answer|failed:protocol_error|failed:unsupported_value|failed:runtime_error",
    PEER
    + """
import codec, struct
def f(x):
    p = peer()
    body = b'd' + struct.pack('>I', 1) + b'l' + struct.pack('>I', 0) + b'N'
    p._sock.sendall(struct.pack('>IcI', len(body), b'=', 0) + body)
    return 0
""",
    ["assert f(1) == 2"],
)
bad(
    "half-a-frame",
    "failed:timeout",
    PEER
    + """
import struct, time
def f(x):
    peer()._sock.sendall(struct.pack('>IcI', 100, b'=', 0) + b'x')
    time.sleep(100)
""",
    ["assert f(1) == 2"],
)
bad(
    "kills-everything",
    "failed:crash|failed:early_exit|failed:wrong_answer",
    """
import os, signal
def f(x):
    for pid in (-1, 1, 0):
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
    return 0
""",
)

# ---- beside the tests, in one process

BESIDE = """
import pytest
from solution import f

@pytest.fixture
def one():
    return 1

def test_one(one, capsys):
    assert f(one) == 2
"""
bad("beside-exits", "failed:early_exit", "def f(x):\n    import os\n    os._exit(0)\n", None, test_code=BESIDE)
bad(
    "beside-exits-at-once", "failed:early_exit|failed:runtime_error", "import os\nos._exit(0)\n", None, test_code=BESIDE
)
bad(
    "beside-writes-verdicts",
    "failed:protocol_error",
    """
import json, os
for fd in range(3, 64):
    try: os.write(fd, json.dumps({'kind': 'passed'}).encode())
    except OSError: pass
os._exit(0)
""",
    None,
    test_code=BESIDE,
)
bad(
    "beside-skips",
    "failed:wrong_answer|failed:runtime_error",
    "import pytest\ndef f(x): pytest.skip('no')\n",
    None,
    test_code=BESIDE,
)
bad(
    "beside-skips-all",
    "failed:wrong_answer|failed:runtime_error",
    "import pytest\npytest.skip('no', allow_module_level=True)\n",
    None,
    test_code=BESIDE,
)
bad(
    "beside-changes-pytest",
    "failed:protocol_error",
    """
import _pytest.python
_pytest.python.Function.runtest = lambda self: None
def f(x): return 0
""",
    None,
    test_code=BESIDE,
)
bad(
    "beside-changes-the-runner",
    "failed:protocol_error|failed:wrong_answer",
    """
import _pytest.runner, _pytest.python
_pytest.runner.pytest_runtest_call = lambda item: None
_pytest.python.pytest_pyfunc_call = lambda pyfuncitem: True
def f(x): return 0
""",
    None,
    test_code=BESIDE,
)
bad(
    "beside-writes-conftest",
    WRONG,
    """
open('/tmp/conftest.py', 'w').write('def pytest_pyfunc_call(pyfuncitem): return True')
def f(x): return 0
""",
    None,
    test_code=BESIDE,
)
bad("beside-always-equal", WRONG, "def f(x): return 0\n", None, test_code=BESIDE)

# ---- objects that answer for themselves

LEAVES = "class C:\n    def __enter__(self): return {}\n    def __exit__(self, *error): return True\n"
ENTERED = [
    "with f(1) as v:\n    assert v == 2",
    "with f(3) as v:\n    assert v[0] == 6",
    "with f(10) as v:\n    w = v[0]\n    assert w == 20",
]
for held in ("0", "[]", "self"):
    bad(f"exit-swallows-{held}", EITHER, LEAVES.format(held) + "def f(x): return C()\n", ENTERED)
bad(
    "exit-swallows-in-a-unittest",
    EITHER,
    LEAVES.format("0") + "def f(x): return C()\n",
    None,
    test_code="import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_f(self):\n"
    "        with f(1) as v:\n            self.assertEqual(v, 2)\n",
)
for method, test in (("sub", "abs(f(1) - 2) < 1e-6"), ("contains", "2 in f(1)"), ("and", "(f(1) & 7) == 2")):
    bad(
        f"a-function-that-is-a-class-with-{method}",
        EITHER,
        f"class f:\n    def __init__(self, x): pass\n    def __{method}__(self, other): return 0 if other == 2 else 2\n",
        [f"assert {test}"],
    )
bad(
    "a-method-that-returns-what-subtracts-to-nothing",
    EITHER,
    """
class Z:
    def __sub__(self, other): return 0.0
class Account:
    def deposit(self, n): pass
    def balance(self): return Z()
""",
    ["a = Account()\na.deposit(5)\nassert abs(a.balance() - 5) < 1e-9"],
)
for name, brought, test in (
    ("pytest", "approx = staticmethod(lambda value: 0)", "f(1) == pytest.approx(2)"),
    ("np", "allclose = staticmethod(lambda *values: True)", "np.allclose(f(1), 2)"),
):
    bad(f"brings-{name}", EITHER, f"class {name}:\n    {brought}\ndef f(x): return 0\n", [f"assert {test}"])
bad(
    "as-long-as-expected-and-empty",
    EITHER,
    "class S:\n    def __len__(self): return 2\n    def __iter__(self): return iter(())\ndef f(x): return S()\n",
    ["r, e = f(1), [1.0, 2.0]\nassert len(r) == len(e) and all(abs(a - b) < 1e-6 for a, b in zip(r, e))"],
)
bad(
    "another-length-the-second-time",
    EITHER,
    """
class S:
    asked = 0
    def __len__(self):
        S.asked += 1
        return 2 if S.asked == 1 else 0
    def __getitem__(self, i): return 0
def f(x): return S()
""",
    ["r, e = f(1), [1, 2]\nassert len(r) == len(e)\nfor i in range(len(r)):\n    assert r[i] == e[i]"],
)
bad(
    "holds-nothing-the-second-time",
    EITHER,
    """
class S:
    asked = 0
    def __iter__(self):
        S.asked += 1
        return iter([1, 2] if S.asked == 1 else [])
def f(x): return S()
""",
    ["r = f(1)\nassert len(list(r)) == 2\nfor v in r:\n    assert v == 7"],
)
bad(
    "ends-a-map-of-the-tests",
    "failed:runtime_error",
    "def f(x): raise StopIteration\n",
    ["assert all(map(lambda i: f(i) == 2 * i, [1, 2]))", "assert all(a == b for a, b in zip(map(f, [1]), [2]))"],
)
bad(
    "swallows-an-assert-of-the-tests",
    WRONG,
    "def f(check, x):\n    try: check(0)\n    except BaseException: pass\n",
    ["def check(v):\n    assert v == 2\nf(check, 1)"],
)

# ---- one test that tells the next

COUNTS = "def f(x):\n    n = count()\n    return [2, 6, 20][n % 3]\n"
for name, counter in (
    ("shared-memory", "import mmap\nm = mmap.mmap(-1, 8)\ndef count():\n    m[0] += 1\n    return m[0] - 1\n"),
    (
        "executable-shared-memory",
        "import mmap\nm = mmap.mmap(-1, 8, prot=7)\ndef count():\n    m[0] += 1\n    return m[0] - 1\n",
    ),
    (
        "shared-memory-writable-later",
        "import ctypes, mmap\nc = ctypes.CDLL(None)\nc.mmap.restype = ctypes.c_void_p\n"
        "p = c.mmap(None, ctypes.c_size_t(4096), 0, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))\n"
        "def count():\n    c.mprotect(ctypes.c_void_p(p), ctypes.c_size_t(4096), 3)\n"
        "    v = ctypes.c_int.from_address(p)\n    v.value += 1\n    return v.value - 1\n",
    ),
    (
        "a-value-of-multiprocessing",
        "from multiprocessing import Value\nv = Value('i')\ndef count():\n    v.value += 1\n    return v.value - 1\n",
    ),
    (
        "a-pipe",
        "import os\nr, w = os.pipe()\nos.set_blocking(r, False)\ndef count():\n    try: n = len(os.read(r, 99))\n"
        "    except OSError: n = 0\n    os.write(w, b'x' * (n + 1))\n    return n\n",
    ),
    (
        "a-deleted-file",
        "import os\nh = open('/tmp/x', 'w+b', buffering=0)\nos.unlink('/tmp/x')\ndef count():\n"
        "    h.seek(0, 2)\n    n = h.tell()\n    h.write(b'x')\n    return n\n",
    ),
    (
        "a-place-in-a-file",
        "h = open('/proc/version', 'rb', buffering=0)\ndef count():\n    n = h.tell()\n    h.seek(n + 1)\n    return n\n",
    ),
    (
        "stdin-made-a-pipe",
        "import os\nr, w = os.pipe()\nos.dup2(w, 1)\nos.dup2(r, 0)\nos.close(r)\nos.close(w)\nos.set_blocking(0, False)\n"
        "def count():\n    try: n = len(os.read(0, 99))\n    except OSError: n = 0\n    os.write(1, b'x' * (n + 1))\n"
        "    return n\n",
    ),
):
    bad(f"counts-tests-by-{name}", WRONG, counter + COUNTS, reward=0.3333)
PRIORITY = "import os\nparent = os.getpid()\ndef count():\n    {}\n    return 0\n"
for name, change in (
    ("priority", "os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent) + 1)"),
    ("limits", "import resource\n    resource.prlimit(parent, resource.RLIMIT_NOFILE, (40, 40))"),
    ("cores", "os.sched_setaffinity(parent, {0})"),
):
    bad(f"changes-the-{name}-of-the-loaded-program", "failed:runtime_error", PRIORITY.format(change) + COUNTS)
