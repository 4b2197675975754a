#!/usr/bin/env python3
"""Times of collectives between two GPUs: by kernels of a plan, by NCCL as a plan's runtime calls it, and by raw NCCL, in one run.

    exchange_ratio.py EXCHANGE_TIME LIBRARY.k31 PEER.k31

The plans are of test/mesh/exchange_plan.py, for two ranks; EXCHANGE_TIME also checks what they compute. Raw NCCL is called without anything between, the
same sizes and as many calls in a graph as an entry of the plans has (PyTorch only makes the memory and the graph). Ratios: raw NCCL's time over ours, above 1 is ours being faster.
"""
import ctypes
import os
import re
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("exchange_ratio: PyTorch is missing; run it with a Python that has it (pip install torch)")
import torch.multiprocessing as mp

HIDDEN, REPEAT, ROUNDS = 7168, 100, 9


def ours(program, plan):
    done = subprocess.run([program, plan, str(ROUNDS)], capture_output=True, text=True, check=False, timeout=100)
    if done.returncode != 0:
        sys.exit(f"FAILED {program} {plan}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return {line.split()[0]: float(line.split()[2]) for line in done.stdout.splitlines() if re.match(r"\w+\.\d+ \w+ [\d.]+$", line)}


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 128)]


class Nccl:
    """NCCL's C functions for bf16 sums on one communicator of two ranks."""
    BF16, SUM = 9, 0

    def __init__(self):
        self.functions = ctypes.CDLL("libnccl.so.2")  # PyTorch has opened it
        self.comm = ctypes.c_void_p()

    def unique_id(self):
        made = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(made))
        return bytes(made)

    def connect(self, identifier, rank):
        self.call("ncclCommInitRank", ctypes.byref(self.comm), 2, UniqueId.from_buffer_copy(identifier), rank)

    def call(self, name, *arguments):
        if code := getattr(self.functions, name)(*arguments):
            sys.exit(f"FAILED {name}: NCCL says {code}")

    def move(self, name, *arguments):
        """Addresses, then a count of values and what else the function has before its communicator."""
        typed = [ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else a for a in arguments]
        self.call(name, *typed, self.comm, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def calls(nccl, kind, rows):
    """A function that issues one collective of so many rows a rank (pieces of so many rows)."""
    count = ctypes.c_size_t(rows * HIDDEN)
    x, out = (torch.randn(rows * 2, HIDDEN, device="cuda").to(torch.bfloat16) for _ in range(2))
    if kind == "all_reduce":
        return lambda: nccl.move("ncclAllReduce", x, x, count, nccl.BF16, nccl.SUM)
    if kind == "all_gather":
        return lambda: nccl.move("ncclAllGather", x, out, count, nccl.BF16)
    if kind == "reduce_scatter":
        return lambda: nccl.move("ncclReduceScatter", x, out, count, nccl.BF16, nccl.SUM)

    def exchange():
        nccl.call("ncclGroupStart")
        for peer in range(2):
            nccl.move("ncclSend", x[peer * rows:], count, nccl.BF16, peer)
            nccl.move("ncclRecv", out[peer * rows:], count, nccl.BF16, peer)
        nccl.call("ncclGroupEnd")
    return exchange


def raw_rank(rank, identifier, names, results):
    torch.cuda.set_device(rank)
    torch.zeros(1, device="cuda")
    nccl = Nccl()
    nccl.connect(identifier, rank)
    for name in names:
        kind, rows = name.split(".")
        one = calls(nccl, kind, int(rows))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            one()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(REPEAT):
                one()
        for _ in range(200 if int(rows) <= 64 else 20):  # clocks rise; as often on both ranks
            graph.replay()
        times = []
        for _ in range(ROUNDS + 2):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e6 / REPEAT)
        if rank == 0:
            results[name] = sorted(times[2:])[ROUNDS // 2]
        del graph, one  # before their communicator
    nccl.call("ncclCommDestroy", nccl.comm)


def main(program, library_plan, peer_plan):
    peer, library = ours(program, peer_plan), ours(program, library_plan)
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(raw_rank, args=(Nccl().unique_id(), list(peer), results), nprocs=2)
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
