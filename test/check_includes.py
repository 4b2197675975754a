#!/usr/bin/env python3
"""Who may include whom: the table of docs/overview.md as data. Prints each include that breaks it; exit 1 if there is one.

    check_includes.py ROOT
"""
import os
import re
import sys

# folder or file: (prefixes of our own that it may include, foreign prefixes that it must not include)
COMPILER_HEADERS = ("mlir/", "llvm/", "lld/", "clang/")
# Readers of plan files on the compiler's side must refuse what Load refuses, in the same words: one library, one header.
PLAN_CHECK = "runtime/plan/plan_file.h"
# explain shows which launches a host runs at once: the rule that Bind uses, not a copy of it.
HOST_SCHEDULE = "runtime/host/schedule.h"
# What both command lines do alike.
USAGE = "tools/usage.h"
TABLE = {
    "runtime/schema": (("runtime/schema/",), COMPILER_HEADERS),
    "runtime": (("runtime/",), COMPILER_HEADERS),
    "codegen/kernels": (("codegen/kernels/",), COMPILER_HEADERS),
    "dialects": (("dialects/",), ()),
    "codegen": (("codegen/", "dialects/"), ()),
    "compiler": (("compiler/", "codegen/", "dialects/", "runtime/schema/", "runtime/base/", PLAN_CHECK), ()),
    "tools/usage.h": (("runtime/base/",), COMPILER_HEADERS),
    "tools/k31_run": (("tools/k31_run/", USAGE, "runtime/"), COMPILER_HEADERS),
    "tools/dev/fuzz": (("tools/dev/fuzz/", "runtime/"), COMPILER_HEADERS),
    "tools/dev/fuzz/Import": (("tools/dev/fuzz/", "compiler/Import/"), ()),
    "tools/k31c": (("tools/k31c/", "compiler/", "codegen/", "dialects/", "runtime/schema/", "runtime/base/", PLAN_CHECK,
                    HOST_SCHEDULE, USAGE), ()),
    "tools/k31_opt": (("compiler/", "codegen/", "dialects/"), ()),
    "tools/k31_translate": (("tools/k31_translate/", "compiler/", "codegen/", "dialects/", "runtime/schema/", "runtime/base/"), ()),
}
OURS = ("runtime/", "codegen/", "dialects/", "compiler/", "tools/", "test/")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')
SOURCES = (".h", ".cpp", ".cuh", ".cu")


def rule_of(path):
    """The longest folder of the table that holds the file, or the file itself."""
    best = max((f for f in TABLE if path.startswith(f + "/") or path == f), key=len, default=None)
    return best, TABLE.get(best)


def main(root):
    broken = files = 0
    for folder in ("runtime", "codegen", "dialects", "compiler", "tools"):
        for parent, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if not name.endswith(SOURCES):
                    continue
                path = os.path.relpath(os.path.join(parent, name), root)
                where, rule = rule_of(path)
                if rule is None:
                    print(f"{path}: no rule for this folder in check_includes.py")
                    broken += 1
                    continue
                files += 1
                allowed, forbidden = rule
                for number, line in enumerate(open(os.path.join(root, path), encoding="utf-8"), 1):
                    match = INCLUDE.match(line)
                    if not match:
                        continue
                    target = match.group(1)
                    own = target.startswith(OURS)
                    if (own and not target.startswith(allowed)) or target.startswith(forbidden or ("\0",)):
                        print(f"{path}:{number}: {where} must not include {target}")
                        broken += 1
    print(f"{files} files, {broken} broken includes")
    return 1 if broken or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
