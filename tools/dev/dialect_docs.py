#!/usr/bin/env python3
"""Writes docs/dialects/<dialect>.md from the .td files; with --check only compares, exit 1 when one is out of date.

    dialect_docs.py [--check]
"""
import os
import subprocess
import sys

LLVM = "/usr/lib/llvm-22"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIALECTS = {"k31": "K31", "nn": "NN", "attn": "Attn", "moe": "Moe", "coll": "Coll", "plan": "Plan"}


def generate(dialect, folder):
    command = [f"{LLVM}/bin/mlir-tblgen", "-gen-dialect-doc", f"-dialect={dialect}", "-I", ROOT, "-I", f"{LLVM}/include",
               f"{ROOT}/dialects/{folder}/{folder}Ops.td"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # The generator pads lines; a text file of ours has no blanks at the end of a line.
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def main(check):
    stale = 0
    for dialect, folder in DIALECTS.items():
        path = f"{ROOT}/docs/dialects/{dialect}.md"
        text = generate(dialect, folder)
        if check:
            have = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            if have != text:
                print(f"docs/dialects/{dialect}.md does not match dialects/{folder}: run tools/dev/dialect_docs.py")
                stale += 1
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
