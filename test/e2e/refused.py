#!/usr/bin/env python3
"""refused.py CODE TEXT COMMAND...: passes when COMMAND ends with exit code CODE, writes nothing to stdout, and one line to stderr that
starts with "PROGRAM: error: " and has TEXT in it."""
import os
import subprocess
import sys

code, text, *command = sys.argv[1:]
done = subprocess.run(command, capture_output=True, text=True)
start = os.path.basename(command[0]) + ": error: "
if done.returncode != int(code) or done.stdout or done.stderr.count("\n") != 1 or not done.stderr.startswith(start) or text not in done.stderr:
    sys.exit(f"{command}\nexit code {done.returncode}, expected {code}; stdout {done.stdout!r}, expected nothing; stderr:\n{done.stderr}"
             f"expected one line: {start}...{text}...")
