#!/usr/bin/env python3
"""check_includes.py and check_sizes.py find what breaks their rules, in trees made for it."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(script, files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        done = subprocess.run([sys.executable, os.path.join(HERE, script), root], capture_output=True, text=True)
        return done.returncode, done.stdout


def expect(found, code, *parts):
    assert found[0] == code and all(part in found[1] for part in parts), (found, code, parts)


good = {"runtime/a.cpp": '#include "runtime/base/cat.h"\n#include <vector>\n',
        "compiler/A.cpp": '#include "runtime/plan/plan_file.h"\n#include "mlir/IR/Value.h"\n'}
expect(run("check_includes.py", good), 0, "2 files, 0 broken")
for path, include in (("runtime/b.cpp", "llvm/ADT/StringRef.h"), ("runtime/b.cpp", "codegen/Target.h"),
                      ("compiler/B.cpp", "runtime/session.h"), ("dialects/B.cpp", "compiler/Pipeline.h"),
                      ("codegen/kernels/nn/b.host.cpp", "codegen/Target.h"), ("tools/k31_run/b.cpp", "compiler/Pipeline.h")):
    expect(run("check_includes.py", good | {path: f'#include "{include}"\n'}), 1, f"{path}:1:", include)
expect(run("check_includes.py", good | {"tools/new/b.cpp": ""}), 1, "no rule for this folder")
expect(run("check_includes.py", {}), 1)

expect(run("check_sizes.py", {"runtime/a.cpp": "x\n" * 800, "runtime/b.cpp": "x\n"}), 1, "median")
expect(run("check_sizes.py", {"runtime/a.cpp": "x\n" * 800, "runtime/b.cpp": "x\n", "test/c.py": "x\n"}), 0, "largest 800")
expect(run("check_sizes.py", {"runtime/a.cpp": "x\n" * 801, "runtime/b.cpp": "x\n", "test/c.py": "x\n"}), 1, "the limit is 800")
