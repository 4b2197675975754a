#!/usr/bin/env python3
"""Compares plans of several ranks with the plan of one rank for the same checkpoint, on the host.

    mesh.py CASE --mesh tp=2 --work DIR [--check logits,greedy,batch,...] [--launch mpirun|self] [--one-expert]

CASE is one of test/e2e/golden.py. fp32; logits within 2e-3 of those of one rank and of the golden ones, ids equal. `--launch mpirun`
starts the ranks by Open MPI, `self` leaves that to k31-run. One thread a rank.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from golden import Case, best_level, difference, report  # noqa: E402
from mpi import mpirun  # noqa: E402
from safetensors_io import read_safetensors  # noqa: E402

LIMIT = 2e-3


def ranks_of(mesh):
    """World size: tp dp pp, where an omitted dp is max(1, ep / tp)."""
    sizes = {key: int(value) for key, value in (part.split("=") for part in mesh.split(","))}
    tp, ep = sizes.get("tp", 1), sizes.get("ep")
    return tp * sizes.get("dp", max(1, ep // tp) if ep else 1) * sizes.get("pp", 1)


class Plan:
    def __init__(self, case, folder, mesh, options):
        self.case, self.folder, self.work, self.bin = case, folder, options.work, options.bin
        self.mesh, self.options = mesh, options
        self.ranks, self.mpirun = ranks_of(mesh) if mesh else 1, options.launch == "mpirun"
        extra = options.compile.split() if mesh else []
        if mesh and "--moe-exchange" not in extra:
            extra += ["--moe-exchange", "replicate"]
        self.path = os.path.join(options.work, f"{case.name}-{mesh or 'one'}{''.join(extra)}.k31")
        # Kernels are kept beside the work folder: the tests share them.
        self.call([self.tool("k31c"), "compile", case.folder, "--target", "cpu", "-o", self.path, "--activations", "fp32",
                   "--max-context", "1024", "--max-batch", str(options.batch), "--prefill-chunk", "128", "--logit-rows", "128",
                   "--cpu-level", best_level(),
                   "--cache-dir", os.path.join(os.path.dirname(os.path.abspath(options.work)), "kernels"),
                   *(["--mesh", mesh] if mesh else []), *extra])

    def tool(self, name):
        return os.path.join(self.bin, name)

    def call(self, line):
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)[:300]}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout

    def run(self, command, *arguments):
        launcher = mpirun(self.ranks) if self.mpirun and self.ranks > 1 else []
        return self.call([*launcher, self.tool("k31-run"), command, "--plan", self.path, "--weights", self.folder,
                          "--threads", "1", *arguments])

    def logits(self, tokens, *arguments):
        out = os.path.join(self.work, f"logits-{self.ranks}.safetensors")
        if os.path.exists(out):
            os.remove(out)
        self.run("logits", "--tokens", ",".join(map(str, tokens)), "--out", out, *arguments)
        return read_safetensors(out)["logits"]

    def generate(self, sequences, count):
        """The ids drawn for each sequence."""
        path = os.path.join(self.work, "sequences.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(",".join(map(str, ids)) for ids in sequences) + "\n")
        out = self.run("generate", "--tokens-file", path, "--max-tokens", str(count), "--ignore-eos", "--json")
        return [s["tokens"] for s in json.loads(out)["sequences"]]


def prompts(case, count, longest):
    """Pieces of the case's prompt, of different lengths."""
    tokens = case.tokens
    return [[tokens[(7 * i + j) % len(tokens)] for j in range(1 + (5 * i + 3) % longest)] for i in range(count)]


def check_logits(mesh, one):
    """Every position of the prompt in one run, in chunks, and in windows that dp groups share."""
    ok = True
    tokens = mesh.case.tokens or max((p["tokens"] for p in mesh.case.prompts), key=len)  # the golden prompt may have an image
    for arguments in ((), ("--chunk", "7"), ("--window", "20")):
        got, expected = mesh.logits(tokens, *arguments), one.logits(tokens, *arguments)
        ok &= report(f"logits {' '.join(arguments)}: to one rank's", difference(got, expected), LIMIT)
        if not arguments and one.folder == one.case.folder and mesh.case.logits is not None:
            ok &= report("logits: to the golden ones", difference(got[-len(one.case.logits):], one.case.logits), LIMIT)
    return ok


def same_ids(what, got, expected):
    wrong = [i for i, (a, b) in enumerate(zip(got, expected)) if a != b]
    ok = len(got) == len(expected) and not wrong
    print(f"{what}: {len(got) - len(wrong)} of {len(expected)} sequences equal{'' if ok else '  FAILED'}")
    return ok


def check_greedy(mesh, one):
    """One sequence: other dp groups have no tokens."""
    tokens = mesh.case.prompts[0]["tokens"]
    return same_ids("greedy", mesh.generate([tokens], 12), one.generate([tokens], 12))


def check_batch(mesh, one):
    """3 and 64 sequences at once."""
    ok = True
    for count, longest, new in ((3, 40, 8), (64, 12, 3)):
        sequences = prompts(mesh.case, count, longest)
        ok &= same_ids(f"{count} sequences", mesh.generate(sequences, new), one.generate(sequences, new))
    return ok


def check_apart(mesh, _):
    """Sums with the row ops behind them in one kernel give the bits that they give one behind the other."""
    options = argparse.Namespace(**vars(mesh.options))
    options.compile = options.compile.replace("--fuse-sums on", "--fuse-sums off")
    apart = Plan(mesh.case, mesh.folder, mesh.mesh, options)
    kernels = [plan.call([plan.tool("k31c"), "inspect", plan.path, "--collectives"]).count("coll.sum_row") for plan in (mesh, apart)]
    ok = kernels[0] > 0 and kernels[1] == 0
    print(f"sums with a row op: {kernels[0]}, and {kernels[1]} in the other plan{'' if ok else '  FAILED'}")
    for arguments in ((), ("--chunk", "7"), ("--chunk", "1")):
        tokens = mesh.case.tokens[:24] if arguments else mesh.case.tokens
        got, expected = mesh.logits(tokens, *arguments), apart.logits(tokens, *arguments)
        same = np.array_equal(got.view(np.uint32), expected.view(np.uint32))
        print(f"logits {' '.join(arguments)}: {'the same bits' if same else 'other bits  FAILED'}")
        ok &= same
    return ok


def check_random(mesh, one):
    """Random ids in sequences of uneven lengths: routing is as uneven as chance has it, in every chunk another way."""
    random, vocab = np.random.RandomState(5), json.load(open(os.path.join(mesh.folder, "config.json")))
    vocab = vocab.get("text_config", vocab)["vocab_size"]
    tokens = random.randint(0, vocab, 150).tolist()
    ok = report("logits of random ids: to one rank's", difference(mesh.logits(tokens), one.logits(tokens)), LIMIT)
    sequences = [random.randint(0, vocab, 1 + random.randint(90)).tolist() for _ in range(9)]
    return ok & same_ids("9 sequences of random ids", mesh.generate(sequences, 4), one.generate(sequences, 4))


def check_sets(mesh, _):
    """The ranks of a tp group read the same positions, bit for bit; some rows leave positions out."""
    out = mesh.call([mesh.tool("k31-e2e"), "sets", "--plan", mesh.path, "--weights", mesh.folder, "--chunk", "16",
                     "--tokens", ",".join(map(str, mesh.case.tokens))])
    print(out, end="")
    lines = [line.split() for line in out.splitlines()]  # rank R: N sets, M of them ...
    return len(lines) == mesh.ranks and all(0 < int(line[4]) < int(line[2]) for line in lines)


def favour_experts(folder, target):
    """A copy of the checkpoint whose router always takes the first experts: their bias is far above the scores."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    changed = 0
    for name in sorted(os.listdir(target)):
        if not name.endswith(".safetensors"):
            continue
        path = os.path.join(target, name)
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            for tensor, info in json.loads(file.read(size)).items():
                if tensor.endswith("e_score_correction_bias"):
                    count = info["shape"][0]
                    bias = np.linspace(100, 0, count, dtype=np.float32)
                    begin, end = info["data_offsets"]
                    data = bias.tobytes() if info["dtype"] == "F32" else (bias.view(np.uint32) >> 16).astype(np.uint16).tobytes()
                    assert len(data) == end - begin
                    file.seek(8 + size + begin)
                    file.write(data)
                    changed += 1
    if not changed:
        sys.exit(f"{folder}: no bias of a router")
    return target


CHECKS = {name[6:]: function for name, function in list(globals().items()) if name.startswith("check_")}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("case")
    ap.add_argument("--mesh", required=True)
    ap.add_argument("--work", required=True, help="folder to write to")
    ap.add_argument("--bin", default="", help="folder of the programs; else from PATH")
    ap.add_argument("--check", default="logits,greedy")
    ap.add_argument("--launch", default="mpirun", choices=["mpirun", "self"])
    ap.add_argument("--batch", type=int, default=4, help="--max-batch of the plans")
    ap.add_argument("--compile", default="", help="further options of k31c for the plan of several ranks")
    ap.add_argument("--one-expert", action="store_true", help="every token goes to the same experts, those of the first ranks")
    o = ap.parse_args()
    os.makedirs(o.work, exist_ok=True)
    case = Case(o.case, o.work)
    folder = favour_experts(case.folder, os.path.join(o.work, "one-expert")) if o.one_expert else case.folder
    mesh, one = Plan(case, folder, o.mesh, o), Plan(case, folder, None, o)
    wrong = [name for name in o.check.split(",") if not CHECKS[name](mesh, one)]
    sys.exit(f"{o.case} {o.mesh}: {', '.join(wrong)} failed" if wrong else 0)


if __name__ == "__main__":
    main()
