"""What every command line does alike."""

import subprocess
import sys


def ran(main):
    code = f"from stages.common.cli import UserError, run\ndef main(argv):\n    {main}\nrun(main, [])\n"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_odd_code_of_a_data_set_is_none_of_the_users_business():
    shown = "compile('a = 1 is 1', {!r}, 'exec')"
    assert "SyntaxWarning" in ran(shown.format("ours.py")).stderr
    assert ran(shown.format("<a test>")).stderr == ""


def test_a_users_error_is_printed_alone():
    done = ran("raise UserError('config.yaml: no key lr; add it')")
    assert (done.returncode, done.stderr) == (2, "error: config.yaml: no key lr; add it\n")


def test_other_errors_keep_their_trace():
    done = ran("1 / 0")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr and "Traceback" in done.stderr


def test_interrupted():
    done = ran("raise KeyboardInterrupt")
    assert done.returncode == 130 and "run again" in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk():
    done = ran("raise OSError(28, 'No space left on device', 'x.parquet')")
    assert done.returncode == 2 and "x.parquet" in done.stderr and "free some space" in done.stderr
