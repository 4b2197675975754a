#!/usr/bin/env python3
"""Compares a compiled model with golden data of implementations that this project did not write.

    golden.py CASE --bin DIR --work DIR [--activations fp32|bf16] [--check logits|greedy|selection|...]

CASE is tiny-k31, k3-small-s1, or a random checkpoint of test/data/golden/cases.json (made on the spot and checked by sha256).
Prints what was compared with the largest difference; exit 1 when a limit is broken.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "test/data/golden")


def read_safetensors(path):
    """{name: array}; BF16 becomes float32."""
    raw = open(path, "rb").read()
    size = int.from_bytes(raw[:8], "little")
    types = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "BF16": np.uint16}
    out = {}
    for name, t in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        a = np.frombuffer(raw[8 + size + begin:8 + size + end], types[t["dtype"]]).reshape(t["shape"])
        out[name] = (a.astype(np.uint32) << 16).view(np.float32) if t["dtype"] == "BF16" else a
    return out


class Case:
    """A checkpoint with its golden numbers: prompt, last logits, greedy prompts."""

    def __init__(self, name, work):
        self.name, self.limit = name, 2e-3
        if name == "tiny-k31":
            self.folder, self.limit = os.path.join(ROOT, "models/tiny-k31"), 2e-4
        elif name == "k3-small-s1":
            self.folder = os.path.join(ROOT, "test/data/k3-small-s1")
            golden = json.load(open(os.path.join(self.folder, "golden.json")))
            self.tokens = golden["prompt_ids"]
            self.logits = np.fromfile(os.path.join(self.folder, "logits.f32"), np.float32).reshape(len(self.tokens), -1)
            self.prompts = [{"name": "prompt", "tokens": self.tokens, "new": golden["new"], "margin": None}]
            return
        else:
            self.folder = make_random(name, work)
        self.info = json.load(open(os.path.join(GOLDEN, name + ".json")))
        self.prompts = [p for p in self.info["greedy"] if "image" not in p["name"]]
        tensors = os.path.join(GOLDEN, name + ".safetensors")
        if os.path.exists(tensors):
            self.data = read_safetensors(tensors)
            self.tokens, self.logits = self.data["tokens"].tolist(), self.data["logits_last"]


def make_random(name, work):
    """Writes the random checkpoint NAME once and checks its bytes against the golden sha256."""
    folder = os.path.join(work, name)
    done = os.path.join(folder, "complete")
    if not os.path.exists(done):
        options = next(c["options"] for c in json.load(open(os.path.join(GOLDEN, "cases.json"))) if c["name"] == name)
        subprocess.run([sys.executable, os.path.join(ROOT, "test/e2e/random_checkpoint.py"), folder, *options.split()], check=True)
        for file, digest in json.load(open(os.path.join(GOLDEN, name + ".json")))["sha256"].items():
            found = hashlib.sha256(open(os.path.join(folder, file), "rb").read()).hexdigest()
            if found != digest:
                sys.exit(f"{folder}/{file}: sha256 {found}, the golden data belongs to {digest}")
        open(done, "w").close()
    return folder


class Tools:
    def __init__(self, bin_folder, work):
        self.k31c, self.k31_run, self.work = os.path.join(bin_folder, "k31c"), os.path.join(bin_folder, "k31-run"), work

    def compile(self, case, *options):
        plan = os.path.join(self.work, "-".join([case.name, *(o.strip("-") for o in options)]) + ".k31")
        subprocess.run([self.k31c, "compile", case.folder, "--target", "cpu", "-o", plan, *options], check=True, stdout=subprocess.DEVNULL)
        return plan

    def logits(self, case, plan, tokens, *options):
        out = os.path.join(self.work, f"{case.name}-{os.getpid()}.safetensors")
        subprocess.run([self.k31_run, "logits", "--plan", plan, "--weights", case.folder, "--tokens", ",".join(map(str, tokens)), "--out", out,
                        *options], check=True)
        result = read_safetensors(out)["logits"]
        os.remove(out)
        return result

    def generate(self, case, plan, tokens, count):
        run = subprocess.run([self.k31_run, "generate", "--plan", plan, "--weights", case.folder, "--tokens", ",".join(map(str, tokens)),
                              "--max-tokens", str(count), "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(run.stdout)["sequences"][0]["tokens"]


def report(what, value, limit):
    ok = value <= limit
    print(f"{what}: {value:.3g}, limit {limit:.3g}{'' if ok else '  FAILED'}")
    return ok


def check_logits(case, tools, plan, *options):
    got = tools.logits(case, plan, case.tokens, *options)[-len(case.logits):]
    return report(f"{case.name} logits {' '.join(options)} max difference", float(np.abs(got - case.logits).max()), case.limit)


def check_greedy(case, tools, plan):
    """Ids equal up to the first step whose margin is below the limit."""
    ok = True
    for p in case.prompts:
        count = len(p["new"])
        if p["margin"]:
            count = next((i for i, m in enumerate(p["margin"]) if m < case.limit), count)
        got = tools.generate(case, plan, p["tokens"], len(p["new"]))
        same = next((i for i, (a, b) in enumerate(zip(got, p["new"])) if a != b), min(len(got), len(p["new"])))
        good = same >= count
        ok &= good
        print(f"{case.name} greedy {p['name']}: {same} of {len(p['new'])} ids equal, {count} needed{'' if good else '  FAILED'}")
    return ok


def check_bf16(case, tools, plan):
    """Root mean square against the fp32 golden logits at most twice what the reference's own bf16 mode has."""
    got = tools.logits(case, plan, case.tokens)[-len(case.logits):]
    rms = float(np.sqrt(np.mean((got - case.logits) ** 2)))
    return report(f"{case.name} bf16 rms difference", rms, 2 * case.info["bf16_rms_difference"])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("case")
    ap.add_argument("--bin", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--activations", default="fp32", choices=["fp32", "bf16"])
    o = ap.parse_args()
    os.makedirs(o.work, exist_ok=True)
    case, tools = Case(o.case, o.work), Tools(o.bin, o.work)
    plan = tools.compile(case, "--activations", o.activations, "--max-context", "1024")
    if o.activations == "bf16":
        ok = check_bf16(case, tools, plan)
    else:
        ok = not hasattr(case, "logits") or all([check_logits(case, tools, plan), check_logits(case, tools, plan, "--chunk", "7")])
        ok &= check_greedy(case, tools, plan)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
