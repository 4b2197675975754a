"""Runs a command that must fail for want of NVIDIA's driver, with one line; does nothing where the driver is installed."""
import ctypes
import subprocess
import sys

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
    expected = "the plan is for target sm_90a, which needs NVIDIA's driver, but libcuda.so.1 cannot be opened"
    assert done.returncode == 1 and expected in done.stderr and done.stderr.count("\n") == 1, done
