#!/usr/bin/env python3
"""Compares a compiled model with golden data of implementations that this project did not write.

    golden.py CASE --work DIR [--target cpu|sm_90a] [--activations fp32|bf16] [--kv-dtype fp8] [--check logits,greedy,...] [--bin DIR]

CASE is tiny-k31, k3-small-s1, or a random checkpoint of test/data/golden/cases.json (made on the spot and checked by sha256).
Prints what was compared with the largest difference; exit 1 when a limit is broken.

fp32 limits: 2e-3 absolute on logits and caches, 2e-4 for tiny-k31.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

from safetensors_io import read_safetensors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "test/data/golden")
SMALL = os.path.join(ROOT, "test/data/k3-small-s1")


class Case:
    """A checkpoint with its golden numbers: `tokens` of the prompt, their last `logits`, greedy `prompts`, `data`, `dump`."""

    def __init__(self, name, work):
        self.name, self.limit, self.data, self.dump, self.tokens, self.logits = name, 2e-3, {}, {}, None, None
        if name == "k3-small-s1":
            self.folder, self.info = SMALL, json.load(open(os.path.join(SMALL, "golden.json")))
            self.tokens = self.info["prompt_ids"]
            self.logits = np.fromfile(os.path.join(SMALL, "logits.f32"), np.float32).reshape(len(self.tokens), -1)
            self.prompts = [{"name": "prompt", "tokens": self.tokens, "new": self.info["new"], "margin": None}]
            return
        if name == "tiny-k31":
            self.folder, self.limit = os.path.join(ROOT, "models/tiny-k31"), 2e-4
        else:
            self.folder = make_random(name, work)
        self.info = json.load(open(os.path.join(GOLDEN, name + ".json")))
        self.prompts = [p for p in self.info["greedy"] if "image" not in p["name"]]
        if os.path.exists(os.path.join(GOLDEN, name + ".safetensors")):  # of a text prompt
            self.data = read_safetensors(os.path.join(GOLDEN, name + ".safetensors"))
            self.dump = read_safetensors(os.path.join(GOLDEN, name + ".dump.safetensors"))
            self.tokens, self.logits = self.data["tokens"].tolist(), self.data["logits_last"]


def make_random(name, work):
    """Writes the random checkpoint NAME and checks its bytes against the golden sha256."""
    folder = os.path.join(work, name)
    options = next(c["options"] for c in json.load(open(os.path.join(GOLDEN, "cases.json"))) if c["name"] == name)
    subprocess.run([sys.executable, os.path.join(ROOT, "test/e2e/random_checkpoint.py"), folder, *options.split()], check=True)
    for file, digest in json.load(open(os.path.join(GOLDEN, name + ".json")))["sha256"].items():
        with open(os.path.join(folder, file), "rb") as f:
            found = hashlib.sha256(f.read()).hexdigest()
        if found != digest:
            sys.exit(f"{folder}/{file}: sha256 {found}, the golden data belongs to {digest}")
    return folder


def best_level():
    """The best processor level of this machine, which spares the compile of the others."""
    flags = next((set(line.split(":")[1].split()) for line in open("/proc/cpuinfo") if line.startswith("flags")), set())
    if not {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return "x86-64-v3"
    if "avx512_bf16" not in flags:
        return "x86-64-v4"
    # Whether the system gives out the registers of AMX is known to the runtime alone.
    return "x86-64-v4-amx,x86-64-v4-bf16" if {"amx_tile", "amx_bf16"} <= flags else "x86-64-v4-bf16"


class Model:
    """A plan of the case, and the programs that run it."""

    def __init__(self, case, options):
        self.case, self.work, self.bin = case, options.work, options.bin
        self.plan = os.path.join(options.work, f"{case.name}-{options.kv_dtype or options.activations}.k31")
        level = best_level() if options.cpu_level == "best" else options.cpu_level
        if options.target != "cpu":
            level = "all"  # of no processor
        # Kernels are kept beside the work folder: the tests share them.
        self.call("k31c", "compile", case.folder, "--target", options.target, "-o", self.plan, "--activations", options.activations,
                  "--max-context", "1024", "--prefill-chunk", "512", "--logit-rows", "512",
                  "--cache-dir", os.path.join(os.path.dirname(os.path.abspath(options.work)), "kernels"),
                  *(["--cpu-level", level] if level != "all" else []),
                  *(["--kv-dtype", options.kv_dtype] if options.kv_dtype else []))
        if options.kv_dtype:  # the same with plain caches, to compare with
            plain = argparse.Namespace(**vars(options))
            plain.kv_dtype = None
            self.plain = Model(case, plain)

    def call(self, tool, *arguments):
        return subprocess.run([os.path.join(self.bin, tool), *arguments], check=True, stdout=subprocess.PIPE).stdout

    def run(self, tool, command, *arguments):
        return self.call(tool, command, "--plan", self.plan, "--weights", self.case.folder, *arguments)

    def tensors(self, tool, command, *arguments):
        """Tensors that a command writes for the case's prompt."""
        out = os.path.join(self.work, command + ".safetensors")
        self.run(tool, command, "--tokens", ",".join(map(str, self.case.tokens)), "--out", out, *arguments)
        return read_safetensors(out)

    def logits(self, *options):
        return self.tensors("k31-run", "logits", *options)["logits"]

    def generate(self, tokens, count):
        out = self.run("k31-run", "generate", "--tokens", ",".join(map(str, tokens)), "--max-tokens", str(count), "--ignore-eos", "--json")
        return json.loads(out)["sequences"][0]["tokens"]

    def perplexity(self):
        return json.loads(self.run("k31-run", "perplexity", "--text-file", os.path.join(GOLDEN, "heldout.txt"), "--window", "512",
                                   "--json"))


def report(what, value, limit):
    ok = value <= limit  # false for NaN
    print(f"{what}: {value:.3g}, limit {limit:.3g}{'' if ok else '  FAILED'}")
    return ok


def difference(a, b):
    """Largest absolute difference; NaN counts as one."""
    if a.shape != b.shape:
        sys.exit(f"shapes {a.shape} and {b.shape} differ")
    return float(np.abs(a - b).max())


def check_logits(model):
    """Every row that the golden data has, in one run and in chunks."""
    case = model.case
    return all([report(f"logits {' '.join(o)}", difference(model.logits(*o)[-len(case.logits):], case.logits), case.limit)
                for o in ((), ("--chunk", "7"))])


def check_greedy(model):
    """Ids equal up to the first step whose margin is below the limit."""
    ok = True
    for p in model.case.prompts:
        count = len(p["new"])
        if p["margin"]:
            count = next((i for i, m in enumerate(p["margin"]) if m < model.case.limit), count)
        got = model.generate(p["tokens"], len(p["new"]))
        same = next((i for i, (a, b) in enumerate(zip(got, p["new"])) if a != b), min(len(got), len(p["new"])))
        ok &= same >= count
        print(f"greedy {p['name']}: {same} of {len(p['new'])} ids equal, {count} needed{'' if same >= count else '  FAILED'}")
    return ok


def check_selection(model):
    """The indexer's keys of every row, exactly."""
    ok, layers = True, [k for k in model.case.data if k.endswith("dsa.indices")]
    if not layers:
        sys.exit(f"{model.case.name} has no indexer")
    for options in (), ("--chunk", "7"):
        got = model.tensors("k31-e2e", "observe", "--kernels", "attn.index_select", *options)
        for name in layers:
            rows, expected = got[name.replace("dsa.indices", "self_attn.indexer.select")].view(np.int32), model.case.data[name]
            keys = expected.shape[1]  # at most the prompt's; the plan's rows are padded further
            wrong = int(((rows[:, :keys] != expected).any(axis=1) | (rows[:, keys:] != -1).any(axis=1)).sum())
            ok &= wrong == 0
            print(f"{name} {' '.join(options)}: {wrong} of {len(rows)} rows differ{'' if wrong == 0 else '  FAILED'}")
    return ok


def golden_state(case):
    """{(layer, what): array} after the prompt."""
    if case.name != "k3-small-s1":
        return {tuple(k.split(".")[1:]): v for k, v in case.data.items() if k.startswith("cache.")}
    out = {}
    for file in os.listdir(SMALL):
        if file.startswith(("kda_state_", "conv_")):
            kind, layer = file[:-4].rsplit("_", 1)
            values = np.fromfile(os.path.join(SMALL, file), np.float32)
            out[str(int(layer)), kind.replace("kda_state", "state")] = values if kind == "kda_state" else values.reshape(-1, 3).T
    return out


def check_state(model):
    """KDA states, convolution windows, and the rows of the paged caches."""
    worst = {}
    for options in (), ("--chunk", "7"):
        got = model.tensors("k31-e2e", "observe", *options)
        for (layer, what), expected in golden_state(model.case).items():
            if what == "state":
                found = got[f"state.{layer}.kda"].view(np.float32).reshape(expected.shape)
            elif what.startswith("conv_"):  # [3, channels of q, k, v]
                found = np.split(got[f"state.{layer}.conv"].view(np.float32).reshape(3, -1), 3, axis=1)["qkv".index(what[-1])]
            elif what == "k_shared":  # [positions, latent and shared part]
                found = got[f"state.{layer}.latent"].view(np.float32)[:, -expected.shape[1]:]
            elif what == "k_index":
                found = got[f"state.{layer}.index"].view(np.float32)
            else:
                sys.exit(f"cache.{layer}.{what}: not known")
            worst[what] = max(worst.get(what, 0), difference(found, expected))
    if len(worst) < 4:
        sys.exit(f"compared only {sorted(worst)}")
    return all([report(f"cache {what}", value, model.case.limit) for what, value in sorted(worst.items())])


# Label of a launch, after the layer: what the reference calls its output.
INTERMEDIATES = {"input_layernorm": "attn_in", "post_attention_layernorm": "mlp_in", "self_attn.kda": "kda.o",
                 "self_attn.f_b_proj": "kda.log_decay", "self_attn.b_proj": "kda.beta", "self_attn.q_b_proj": "mla.q",
                 "self_attn.q_proj": "mla.q", "self_attn.kv_a_layernorm": "mla.latent", "block_sparse_moe.route": "router.ids",
                 "block_sparse_moe.route#1": "router.weights", "block_sparse_moe.routed_expert_norm": "moe.latent"}


def check_intermediates(model):
    """Outputs inside the layers at the last positions: chosen experts exactly, numbers within the limit times the largest."""
    got, worst, layers = model.tensors("k31-e2e", "observe", "--kernels", "nn,attn.kda,moe.route"), {}, 0
    for name, rows in got.items():
        part = name.split(".", 2)
        expected = model.case.dump.get(f"layers.{part[1]}.{INTERMEDIATES.get(part[2])}") if len(part) == 3 else None
        if expected is None:
            continue
        what = INTERMEDIATES[part[2]]
        found = rows.view(expected.dtype)[-len(expected):]
        if found.size != expected.size:
            continue  # of a fused launch with other outputs
        found = found.reshape(expected.shape)
        size = 1 if what == "router.ids" else float(np.abs(expected).max())
        worst[what] = max(worst.get(what, 0), difference(found, expected) / size)
        layers += what == "attn_in"
    needed = {"attn_in", "mlp_in", "kda.o", "mla.latent", "router.ids", "router.weights"}
    if not needed <= set(worst) or layers != sum(k.endswith("attn_in") for k in model.case.dump):
        sys.exit(f"compared only {sorted(worst)} in {layers} layers")
    return all([report(what, value, 0 if what == "router.ids" else model.case.limit) for what, value in sorted(worst.items())])


def check_batching(model):
    """Chunks, slots and company change the logits by rounding at most."""
    ways = model.tensors("k31-e2e", "batching")
    first, ok, count = next(iter(ways.values())), len(ways) == 9, len(model.case.tokens)
    for name, rows in ways.items():
        expected = model.case.logits
        ok &= report(f"{name}: to the golden logits", difference(rows[count - len(expected):count], expected), model.case.limit)
        ok &= report(f"{name}: to the first way", difference(rows, first), model.case.limit)
    return ok


def check_bf16(model):
    """Root mean square against the fp32 golden logits at most twice what the reference's own bf16 mode has."""
    got = model.logits()[-len(model.case.logits):]
    return report("bf16 rms difference", float(np.sqrt(np.mean((got - model.case.logits) ** 2))), 2 * model.case.info["bf16_rms_difference"])


def check_perplexity(model):
    """fp32: the reference's within 0.02. bf16: within 0.25 % of the reference's fp32; a plan without the indexer gets 51.580."""
    got, expected = model.perplexity(), model.case.info["perplexity"][0]
    if model.plan.endswith("fp8.k31"):  # within 1 %
        low, high = 0.99 * expected["perplexity"], 1.01 * expected["perplexity"]
    else:
        low, high = (51.82, 52.14) if model.plan.endswith("bf16.k31") else (expected["perplexity"] - 0.02, expected["perplexity"] + 0.02)
    ok = got["targets"] == expected["targets"] and low <= got["perplexity"] <= high
    print(f"perplexity {got['perplexity']:.3f} of {got['targets']} targets, limits {low:.3f} and {high:.3f}{'' if ok else '  FAILED'}")
    return ok


def check_fp8(model):
    """Caches of codes against plain ones: 99.5 % of the selected positions where there is a choice, and the logits."""
    options = ("--kernels", "attn.index_select")
    coded, plain = (m.tensors("k31-e2e", "observe", *options) for m in (model, model.plain))
    common = total = 0
    for name in coded:
        if not name.endswith("indexer.select"):
            continue
        for a, b in zip(coded[name].view(np.int32), plain[name].view(np.int32)):
            if b.min() >= 0 and len(b) < len(coded[name]):
                common, total = common + len(np.intersect1d(a, b)), total + len(b)
    if total == 0:
        sys.exit(f"{model.case.name} selects nothing")
    got, expected = model.logits(), model.plain.logits()
    rms = float(np.sqrt(np.mean((got - expected) ** 2)))
    return all([report(f"share of {total} selected positions that differ", 1 - common / total, 0.005),
                report("fp8 rms difference of the logits", rms, 2 * model.case.info["bf16_rms_difference"])])


def check_text(model):
    """Prompts as text, through the tokenizer: the text of the golden ids; a chat ends with its message."""
    ok = True
    for p in model.case.prompts:
        if p["name"] == "start of heldout.txt":
            continue  # given as ids
        prompt = ["--prompt", p["text"]] if p["name"] == "text" else ["--prompt", p["question"], "--chat"]
        out = json.loads(model.run("k31-run", "generate", *prompt, "--max-tokens", str(len(p["new"])), "--json"))["sequences"][0]
        same = out["tokens"] == p["new"] and (p["name"] == "chat" or out["text"] == p["new_text"])
        ok &= same
        print(f"text of {prompt[1]!r}: {'equal' if same else f'{out}, expected {p}  FAILED'}")
    # What a person sees who runs the demo.
    p = model.case.prompts[0]
    shown = model.run("k31-run", "generate", "--prompt", p["text"], "--max-tokens", "60").decode().strip()
    ok &= len(shown) > 100 and p["new_text"].strip().startswith(shown.removeprefix(p["text"]).strip())
    print(shown + ("" if ok else "  FAILED"))
    return ok


CHECKS = {name[6:]: function for name, function in list(globals().items()) if name.startswith("check_")}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("case")
    ap.add_argument("--bin", default="", help="folder of the programs; else from PATH")
    ap.add_argument("--work", required=True, help="folder to write to")
    ap.add_argument("--target", default="cpu", choices=["cpu", "sm_90a"], help="sm_90a: checks that need k31-run alone")
    ap.add_argument("--activations", default="fp32", choices=["fp32", "bf16"])
    ap.add_argument("--kv-dtype", choices=["fp8"], help="of the caches; else that of the activations")
    ap.add_argument("--cpu-level", default="best", help="best: of this machine; all; or a name")
    ap.add_argument("--check", default="logits,greedy", help="some of " + ",".join(CHECKS))
    o = ap.parse_args()
    os.makedirs(o.work, exist_ok=True)
    model = Model(Case(o.case, o.work), o)
    wrong = [name for name in o.check.split(",") if not CHECKS[name](model)]
    sys.exit(f"{o.case} {o.activations}: {', '.join(wrong)} failed" if wrong else 0)


if __name__ == "__main__":
    main()
