#!/usr/bin/env python3
"""Times of the kernel tests beside PyTorch's for the same or the nearest work, in one run on one GPU.

    cublas_ratio.py K31_CUDA_TESTS [--filter TEXT]

Linear: torch.mm (cuBLAS) of the same shape, weights in turns so that they come from memory. Attention: scaled_dot_product_attention
does as many operations with heads of 256 values, since no library kernel takes 576; the rates are compared. KDA has no counterpart in
PyTorch. Both sides are replays of graphs; a ratio above 1 is ours being faster. The tests' own lines are printed too.
"""
import re
import subprocess
import sys

try:
    import torch
except ImportError:
    sys.exit("cublas_ratio: PyTorch is missing; run it with a Python that has it (pip install torch)")

LINE = re.compile(r"^\s+(\S.*?)\s+([\d.]+) us\s+([\d.]+) GB/s\s+([\d.]+) TFLOP/s\s+floor")


def time_us(f, repeats=20):
    """Median over nine replays of a graph of `repeats` calls."""
    f(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            f(i)
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / repeats)
    return sorted(times)[len(times) // 2]


def mm(rows, n, k):
    count = max(1, min(8, 300_000_000 // (n * k * 2)))  # together larger than the second-level cache
    x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
    w = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
    out = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
    return time_us(lambda i: torch.mm(x, w[i % count].t(), out=out), 4 if rows > 1024 else 20)


def attention_rate(rows, keys, heads, dim=256):
    """TFLOP/s of `rows` queries a head over `keys` keys each, in one batch."""
    shape = (1, heads, rows, dim)
    q = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(1, heads, keys, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    us = time_us(lambda _: torch.nn.functional.scaled_dot_product_attention(q, k, v), 2)
    return 4 * rows * keys * heads * dim / us / 1e6


def main(tests, arguments):
    text = arguments[arguments.index("--filter") + 1] if "--filter" in arguments else ""
    parts = [text] if text else ["nn.linear.time", "attn.attend.time", "attn.index_select.time", "attn.kda"]
    for part in parts:
        done = subprocess.run([tests, "--time", "--filter", part], capture_output=True, text=True)
        if done.returncode not in (0, 77):
            print(f"FAILED {tests} --time --filter {part}: {done.stdout[-400:]}{done.stderr[-400:]}")
            return 1
        for line in done.stdout.splitlines():
            found = LINE.match(line)
            if not found:
                continue
            print(line)
            what, us, rate = found[1], float(found[2]), float(found[4])
            numbers = [int(v) for v in re.findall(r"\d+", what)]
            if what.startswith("linear") and " x " in what and len(numbers) >= 3:
                rows, n, k = numbers[-3:]  # before them the tile
                theirs = mm(rows, n, k)
                print(f"      torch.mm {rows} x {n} x {k}: {theirs:.2f} us, ratio {theirs / us:.3f}")
            elif what.startswith("attend sparse prefill"):
                heads = int(re.search(r"(\d+) heads", what)[1])
                theirs = attention_rate(4096, 2048, heads)
                print(f"      scaled_dot_product_attention, 4096 queries, 2048 keys, heads of 256: {theirs:.0f} TFLOP/s, ratio {rate / theirs:.3f}")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
