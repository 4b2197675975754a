#!/usr/bin/env python3
"""Counts the bytes that ranks hand to each other under each form of bringing rows to their experts: traffic.py --work DIR

The counts are those of `k31-run bench --per-op`, of one full prefill bucket. Four ranks on two hosts; then two ranks of which the
first has the experts that all rows go to.
"""
import argparse
import json
import os
import subprocess
import sys

from mesh import Case, favour_experts

ROWS = 64


def call(line):
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)[:300]}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def traffic(work, folder, mesh, form):
    """The collectives of a full prefill bucket, by (op, axis)."""
    plan = os.path.join(work, f"{mesh}-{form}.k31")
    call(["k31c", "compile", folder, "--target", "cpu", "--mesh", mesh, "--moe-exchange", form, "--max-context", "256",
          "--max-batch", "1", "--prefill-chunk", str(ROWS), "--cpu-level", "x86-64-v3",
          "--cache-dir", os.path.join(work, "kernels"), "-o", plan])
    out = call(["k31-run", "bench", "--plan", plan, "--weights", folder, "--threads", "1", "--steps", "1", "--prefill", str(ROWS),
                "--per-op", "--json"])
    run = json.loads(out)["runs"][-1]
    assert (run["kind"], run["tokens"], run["entry"]) == ("prefill", ROWS, f"prefill_t{ROWS}"), run
    found = {(c["op"], c["axis"]): c for c in run["collectives"]}
    for c in found.values():
        for place in ("within_hosts", "between_hosts"):
            assert c[place]["moved"] <= c[place]["capacity"], c
    return found


def total(collectives, what):
    return sum(c["between_hosts"][what] for c in collectives.values())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True)
    o = ap.parse_args()
    os.makedirs(o.work, exist_ok=True)
    case = Case("k31", o.work)

    forms = {form: traffic(o.work, case.folder, "tp=2,ep=4,node=2", form) for form in ("replicate", "dispatch", "two-level")}
    for form, found in forms.items():
        print(f"{form}: {total(found, 'moved')} of {total(found, 'capacity')} bytes between hosts")
    moved = {form: total(found, "moved") for form, found in forms.items()}
    assert 0 < moved["two-level"] < moved["dispatch"] < moved["replicate"], moved
    # What is gathered and summed has no live part, what is sent to experts has one.
    assert moved["replicate"] == total(forms["replicate"], "capacity")
    assert moved["dispatch"] < total(forms["dispatch"], "capacity")
    # Between hosts rows travel along the rails only.
    assert {key for key, c in forms["two-level"].items() if c["between_hosts"]["moved"]} == {("dispatch", "rail"), ("combine", "rail")}

    # Of each exchange there the piece from the second rank to the first is full and the other one is a count of 16 bytes; back, the
    # first rank's piece is full and the other one empty.
    found = traffic(o.work, favour_experts(case.folder, os.path.join(o.work, "one-expert")), "ep=2,node=1", "dispatch")
    there, back = found["dispatch", "ep"], found["combine", "ep"]
    assert there["calls"] == back["calls"] > 0, found
    assert there["between_hosts"]["moved"] == there["between_hosts"]["capacity"] // 2 + 16 * there["calls"] // 2, there
    assert back["between_hosts"]["moved"] == back["between_hosts"]["capacity"] // 2, back
    assert there["within_hosts"]["capacity"] == 0, there


if __name__ == "__main__":
    main()
