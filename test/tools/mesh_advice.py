"""Tries what --memory-limit advises for a mesh that does not fit: every mesh that it names fits, in the bytes that it says.

mesh_advice.py MODEL WORK LIMIT EXPECTED OPTIONS...

EXPECTED meshes are named at least, and so many are tried. OPTIONS go to every compile.
"""
import json
import os
import re
import subprocess
import sys

model, work, limit, expected, *options = sys.argv[1:]
os.makedirs(work, exist_ok=True)


def compile_with(*more):
    command = ["k31c", "compile", model, "--cache-dir", os.path.join(work, "kernels"), "--memory-limit", limit,
               "-o", os.path.join(work, "plan.k31"), *more]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


refused = compile_with(*options)
message = refused.stderr.strip()
assert refused.returncode == 1 and "\n" not in message, refused
needs = int(re.search(r"the plan needs (\d+) bytes", message)[1])
parts = [int(n) for n in re.search(r": (\d+) for weights.* \+ (\d+) for \d+ cached tokens \+ (\d+) for", message).groups()]
assert sum(parts) == needs, message
advice = re.findall(r"; --mesh (\S+) fits: (\d+) ranks of (\d+) bytes", message)
assert len(advice) >= int(expected), message
assert [int(ranks) for _, ranks, _ in advice] == sorted(int(ranks) for _, ranks, _ in advice), message
given = [o for i, o in enumerate(options) if o != "--mesh" and (i == 0 or options[i - 1] != "--mesh")]
for mesh, ranks, size in advice[: int(expected)]:
    assert int(size) < needs, (mesh, size, needs)
    taken = compile_with(*given, "--mesh", mesh)
    assert taken.returncode == 0, (mesh, taken.stderr)
    told = subprocess.run(["k31c", "inspect", os.path.join(work, "plan.k31"), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    facts = json.loads(told.stdout)
    assert facts["ranks"] == int(ranks) and facts["memory"]["total"] == int(size), (mesh, facts["ranks"], facts["memory"]["total"])
print(message)
