"""MLA by query rows where it fits, by heads where it does not: compiles both, then lets a limit between their sizes decide.

mla_limit.py MODEL WORK
"""
import json
import os
import subprocess
import sys

model, work = sys.argv[1:]
os.makedirs(work, exist_ok=True)
plan = os.path.join(work, "plan.k31")


def call(*line):
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def compile_with(*options):
    return call("k31c", "compile", model, "--target", "cpu", "--cpu-level", "x86-64-v3", "--max-context", "4096", "--max-batch", "1",
                "--logit-rows", "1", "--mesh", "tp=2", "--cache-dir", os.path.join(work, "kernels"), "-o", plan, *options)


def memory():
    return json.loads(call("k31c", "inspect", plan, "--json"))["memory"]


def why():
    text = call("k31c", "explain", plan, "--entry", "prefill_t2048")
    return next(line.strip() for line in text.splitlines() if line.strip().startswith("mla "))


compile_with("--sequence-parallel", "on", "--mla", "rows")
rows = memory()
assert "by query rows" in why() and "--mla rows decides" in why(), why()
compile_with("--sequence-parallel", "on", "--mla", "heads")
heads = memory()
assert "--mla heads decides" in why(), why()
whole, share = (table["lines"]["weights: attention"] for table in (rows, heads))
assert share < whole < 4 * share, (share, whole)
compile_with("--sequence-parallel", "off")
# The bank of a rank has half as many rows; its other activations are the same.
assert heads["arenas"]["activations"] < memory()["arenas"]["activations"], (heads["arenas"], memory()["arenas"])

told = compile_with()
assert memory()["total"] == rows["total"] and why().split()[1:4] == ["by", "query", "rows:"], (told, why())
told = compile_with("--memory-limit", str(rows["total"] - 1))
assert memory()["total"] == heads["total"], (told, memory()["total"])
assert "planned by heads" in told and f"needs {rows['total']}" not in told and str(rows["total"]) in told, told
assert why().split()[1:3] == ["by", "heads:"] and "exceeds --memory-limit" in why(), why()
