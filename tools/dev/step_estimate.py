#!/usr/bin/env python3
"""An estimate of a step of a plan for GPUs: what k31c explain says of each launch and collective, with measured times where there are any.

    step_estimate.py PLAN ENTRY [--experts-hit N] [--k31c PATH]

One rank, nothing overlapped, all rows live, contexts at the plan's limit. A kernel takes the time that the compiler chose it by; kernels of
other kinds their bytes or products plus their launch, or MEASURED; experts what the packed bytes of N hit experts take at 2.9 TB/s;
collectives the time of the measured link inside a host, of an assumed one between hosts (compiler/LinkCost.cpp); what is fused behind a sum its
time without a launch.
"""
import argparse
import json
import re
import subprocess

# Times of docs/performance.md, in us, by kernel and rows, for contexts of 1 M; those of 256 and 2048 rows scaled from 4096 queries over
# 131072 keys and from 8192 tokens. Chunks of a head of KDA follow each other, so few heads take as long as 96. The floor of bytes says
# little of chains of latencies.
MEASURED = {
    1: {"attn.index_select": 112.0, "attn.attend": 29.0, "attn_res_mix": 6.2, "rms_norm": 2.4},
    256: {"attn.index_select": 10940 / 16 * 8, "attn.attend": 5130 / 16, "attn_res_mix": 246 / 16, "rms_norm": 35.6 / 16},
    2048: {"attn.kda": 1254 * 2048 / 8192},
}
EXPERT_BYTES_A_SECOND = 2.9e12
LAUNCH = 2.0


def rows_of(step):
    found = re.search(r"\brows = (\d+)|\bcapacity = (\d+)", step.get("config", ""))
    return int(found[1] or found[2]) if found else 0


def parts_of(step):
    return re.split(r"[ +]", step["what"])  # the kernel and what was fused into it


def time_of(step, hit):
    """Microseconds and what they are: kernel, host (a collective inside one) or network."""
    note = {n["about"]: n for n in step["notes"]}
    if "transport" in note:
        n = note["transport"]
        us = next(c["us"] for c in n["candidates"] if c["choice"] == n["choice"])
        if "coll.sum_row" in step["what"]:  # the row op's time without the launch that it does not need
            us += max((t - LAUNCH for part, t in MEASURED.get(rows_of(step), {}).items() if part in parts_of(step)), default=0.0)
        return us, "host" if "of one host" in n["reason"] else "network"
    kernel = note.get("kernel", {"reason": ""})
    if step["what"].startswith("moe.grouped_linear") and hit is not None:
        held, size = map(int, re.search(r"(\d+) of \d+ experts a rank, (\d+) bytes", note["share"]["reason"]).groups())
        return hit * size / held / EXPERT_BYTES_A_SECOND * 1e6 + LAUNCH, "kernel"
    for part, us in MEASURED.get(rows_of(step), {}).items():
        if part in parts_of(step):
            return us, "kernel"
    for candidate in kernel.get("candidates", []):
        if candidate["choice"] == kernel["choice"]:
            return candidate["us"], "kernel"
    floor = re.search(r"([\d.]+) us at least, and ([\d.]+) us to launch", kernel["reason"])
    return (float(floor[1]) + float(floor[2]) if floor else LAUNCH), "kernel"


def group_of(step, section):
    if not section["layers"]:
        return "embedding and head"
    name = step["name"]
    if "attn_res_mix" in step["what"] or name in ("residual", "input_layernorm", "post_attention_layernorm"):
        return "mixes and norms"
    if "self_attn" in name:
        kda = any(s["name"] == "self_attn.kda" for s in section["steps"])
        return "KDA" if kda else "MLA and indexer"
    return "experts" if "block_sparse_moe" in name else "dense MLP"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("plan")
    ap.add_argument("entry")
    ap.add_argument("--experts-hit", type=float, help="experts of a rank that get rows; all as the compiler sees it unless given")
    ap.add_argument("--k31c", default="k31c")
    o = ap.parse_args()
    text = subprocess.run([o.k31c, "explain", o.plan, "--entry", o.entry, "--json"], check=True, stdout=subprocess.PIPE).stdout
    entry = json.loads(text)["entries"][0]
    table, layers = {}, {}
    for section in entry["sections"]:
        count = len(section["layers"]) or 1
        groups = set()
        for step in section["steps"]:
            us, kind = time_of(step, o.experts_hit)
            group = group_of(step, section)
            groups.add(group)
            line = table.setdefault(group, {})
            times, commands = line.get(kind, (0.0, 0))
            line[kind] = times + us * count, commands + count
        for group in groups:
            layers[group] = layers.get(group, 0) + count
    print("| part | layers | kernels | their ms | collectives in a host | ms | between hosts | ms |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    total = {}
    for group, line in table.items():
        cells = []
        for kind in ("kernel", "host", "network"):
            us, commands = line.get(kind, (0.0, 0))
            cells += [str(commands), f"{us / 1000:.2f}"]
            total[kind] = total.get(kind, 0) + us / 1000
        print(f"| {group} | {'' if group.startswith('emb') else layers[group]} | " + " | ".join(cells) + " |")
    print("kernels {kernel:.1f} ms + collectives in a host {host:.1f} ms + between hosts {network:.1f} ms".format(**total), end="")
    print(f" = {sum(total.values()):.1f} ms")


if __name__ == "__main__":
    main()
