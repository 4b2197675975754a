#!/usr/bin/env python3
"""Times of collectives between two GPUs: by kernels of a plan, by NCCL as a plan's runtime calls it, and by raw NCCL, in one run.

    exchange_ratio.py EXCHANGE_TIME LIBRARY.k31 PEER.k31

The plans are of test/mesh/exchange_plan.py, for two ranks; EXCHANGE_TIME also checks what they compute. Raw NCCL is PyTorch's, the same sizes and
as many calls in a graph as an entry of the plans has. Ratios: raw NCCL's time over ours, above 1 is ours being faster.
"""
import os
import re
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

HIDDEN, REPEAT, ROUNDS = 7168, 100, 9


def ours(program, plan):
    done = subprocess.run([program, plan, str(ROUNDS)], capture_output=True, text=True, check=False, timeout=100)
    if done.returncode != 0:
        sys.exit(f"FAILED {program} {plan}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return {line.split()[0]: float(line.split()[2]) for line in done.stdout.splitlines() if re.match(r"\w+\.\d+ \w+ [\d.]+$", line)}


def calls(kind, rows):
    """A function that issues one collective of so many rows a rank (pieces of so many rows)."""
    many = {"all_reduce": 1, "all_gather": 1, "reduce_scatter": 2, "dispatch": 2}[kind]
    x = torch.randn(rows * many, HIDDEN, device="cuda", dtype=torch.bfloat16)
    if kind == "all_reduce":
        out = x.clone()
        return lambda: dist.all_reduce(out)
    out = torch.empty({"all_gather": 2, "reduce_scatter": 1, "dispatch": 2}[kind] * rows, HIDDEN, device="cuda", dtype=torch.bfloat16)
    return {"all_gather": lambda: dist.all_gather_into_tensor(out, x), "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, x),
            "dispatch": lambda: dist.all_to_all_single(out, x)}[kind]


def raw_rank(rank, names, port, results):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for name in names:
        kind, rows = name.split(".")
        one = calls(kind, int(rows))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            one()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(REPEAT):
                one()
        times = []
        for _ in range(ROUNDS + 2):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e6 / REPEAT)
        if rank == 0:
            results[name] = sorted(times[2:])[ROUNDS // 2]
        del graph, one
    dist.destroy_process_group()


def main(program, library_plan, peer_plan):
    peer, library = ours(program, peer_plan), ours(program, library_plan)
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(raw_rank, args=(list(peer), 29571, results), nprocs=2)
        raw = dict(results)
    print("| collective | rows | raw NCCL us | NCCL of a plan us | ratio | peer us | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for name in peer:
        kind, rows = name.split(".")
        print(f"| {kind} | {rows} | {raw[name]:.2f} | {library[name]:.2f} | {raw[name] / library[name]:.2f} | {peer[name]:.2f} | {raw[name] / peer[name]:.2f} |")
    print(f"torch {torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}, 2 x {torch.cuda.get_device_name()}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
