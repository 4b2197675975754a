#!/usr/bin/env python3
"""The size budget: no source file over 800 lines, median at most 200. Prints the numbers; exit 1 when the budget is broken.

    check_sizes.py ROOT
"""
import os
import statistics
import sys

LIMIT, MEDIAN = 800, 200
SUFFIXES = (".h", ".cpp", ".cuh", ".cu", ".td", ".fbs", ".py", ".cmake")
FOLDERS = ("cmake", "codegen", "compiler", "dialects", "runtime", "tools", "test")


def main(root):
    sizes = {}
    for folder in FOLDERS:
        for parent, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith(SUFFIXES):
                    path = os.path.join(parent, name)
                    sizes[os.path.relpath(path, root)] = sum(1 for _ in open(path, encoding="utf-8"))
    over = {p: n for p, n in sizes.items() if n > LIMIT}
    median = statistics.median(sizes.values())
    for path, lines in sorted(over.items()):
        print(f"{path}: {lines} lines, the limit is {LIMIT}")
    print(f"{len(sizes)} files, {sum(sizes.values())} lines, median {median:.0f}, largest {max(sizes.values())}")
    return 1 if over or median > MEDIAN else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
