"""Checks the memory table of a plan against its checkpoint's headers, and tries the advice of --memory-limit.

memory_facts.py PLAN MODEL CACHE OUTPUT
"""
import json
import os
import re
import struct
import subprocess
import sys

plan, model, cache, output = sys.argv[1:]
memory = json.loads(subprocess.run(["k31c", "inspect", plan, "--json"], check=True, stdout=subprocess.PIPE).stdout)["memory"]
lines = memory["lines"]
assert sum(lines.values()) == memory["total"] == sum(memory["arenas"].values()) + memory["reserve"], memory

# Bytes by kind, counted again from the headers. The layers 3, 7 and 8 are MLA.
MLA = (3, 7, 8)
counted = {}
for name in sorted(os.listdir(model)):
    if not name.endswith(".safetensors"):
        continue
    with open(os.path.join(model, name), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    for tensor, facts in header.items():
        if tensor == "__metadata__":
            continue
        layer = re.search(r"layers\.(\d+)\.", tensor)
        if "norm" in tensor or "res_proj" in tensor:
            kind = "norms and residual mixes"
        elif "self_attn" in tensor:
            kind = "attention" if int(layer[1]) in MLA else "KDA"
        elif "shared_experts" in tensor:
            kind = "shared experts"
        elif "experts." in tensor:
            kind = "experts"
        elif "block_sparse_moe" in tensor:
            kind = "router and latent projections"
        elif "mlp" in tensor:
            kind = "dense MLP"
        else:
            kind = "embedding" if "embed" in tensor else "head"
        begin, end = facts["data_offsets"]
        counted[kind] = counted.get(kind, 0) + end - begin
table = {name[len("weights: "):]: size for name, size in lines.items() if name.startswith("weights: ")}
alignment = table.pop("alignment")
differ = {kind: (table.get(kind), counted.get(kind)) for kind in table.keys() | counted.keys() if table.get(kind) != counted.get(kind)}
# A_log of 128 heads is read for the heads that there are; nothing else may differ.
assert all(kind == "KDA" and table[kind] < counted[kind] for kind in differ), differ


def compile_with(limit, *options):
    command = ["k31c", "compile", model, "--target", "cpu", "--max-context", "1024", "--prefill-chunk", "16", "--logit-rows", "1",
               "--cpu-level", "x86-64-v3", "--cache-dir", cache, "--memory-limit", str(limit), "-o", output, *options]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


total, token, sequence = memory["total"], memory["bytes_per_token"], memory["bytes_per_sequence"]
assert compile_with(total, "--max-batch", "4").returncode == 0, "a plan fits its own size"
for less in (1, 256 * token + 1, 8 * 256 * token, 15 * 256 * token + 2 * sequence):
    limit = total - less
    refused = compile_with(limit, "--max-batch", "4")
    assert refused.returncode == 1, refused
    message = refused.stderr.strip()
    parts = [int(number) for number in re.search(r": (\d+) for weights.* \+ (\d+) for \d+ cached tokens \+ (\d+) for", message).groups()]
    assert sum(parts) == total, (message, parts)
    advice = re.search(r"; ((?:--max-batch \d+ )?--cache-tokens \d+) fits$", message)
    assert advice, message
    options = advice[1].split()
    if "--max-batch" not in options:
        options += ["--max-batch", "4"]
    taken = compile_with(limit, *options)
    assert taken.returncode == 0, (limit, options, taken.stderr)
    if options[0] == "--cache-tokens":  # the nearest: a block more is too much
        more = compile_with(limit, "--cache-tokens", str(int(options[1]) + 256), *options[2:])
        assert more.returncode == 1, (limit, options)
nothing = compile_with(1 << 20, "--max-batch", "4")
assert nothing.returncode == 1 and "no cache size fits" in nothing.stderr, nothing
