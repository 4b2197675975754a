#!/usr/bin/env python3
"""Repeats the figures of docs/performance.md for the host: ours beside PyTorch and oneDNN, in one run on the same cores.

    bench_host.py tiny     --reference DIR/k31_reference.py     models/tiny-k31: tokens a second beside the PyTorch reference
    bench_host.py decode   --slice DIR                          a slice of K3.1: bytes a second beside the memory's bandwidth
    bench_host.py prefill  --slice DIR                          its matrix products beside torch.mm, which is oneDNN

Run it with a Python that has PyTorch for `tiny` and `prefill`: python3 -m venv V && V/bin/pip install torch numpy. A slice is a
checkpoint with config.json and headers of safetensors files; its weights are made up. The folder of plans and objects (--work)
is kept. Figures are medians; best values stand beside them, for machines that have other work to do.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Reads `bytes` with every thread, in steps of four cache lines, and prints the best of some rounds in GB/s.
BANDWIDTH = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>
typedef float Vector __attribute__((vector_size(64)));
static volatile float sink;
static void read_all(const char *p, size_t n) {
  Vector sums[4] = {};
  for (size_t i = 0; i + 256 <= n; i += 256)
    for (int j = 0; j < 4; ++j) {
      __builtin_prefetch(p + i + 64 * j + 2048);
      sums[j] += *(const Vector *)(p + i + 64 * j);
    }
  Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  sink = sum[0];
}
int main(int, char **argv) {
  size_t bytes = strtoull(argv[1], nullptr, 10), page = 2 << 20;
  size_t threads = strtoull(argv[2], nullptr, 10), part = bytes / threads / 4096 * 4096;
  char *map = (char *)mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *p = (char *)(((size_t)map + page - 1) / page * page);
  madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, 1, bytes);
  double best = 0;
  for (int round = 0; round < 7; ++round) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (size_t t = 0; t < threads; ++t)
      all.emplace_back(read_all, p + t * part, part);
    for (auto &thread : all)
      thread.join();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (part * threads / seconds / 1e9 > best)
      best = part * threads / seconds / 1e9;
  }
  printf("%.2f\n", best);
}
"""


class Bench:
    def __init__(self, options):
        self.o = options
        os.makedirs(options.work, exist_ok=True)

    def tool(self, name, *arguments):
        done = subprocess.run([os.path.join(self.o.build, "bin", name), *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{name} {' '.join(map(str, arguments))} failed")
        return done.stdout

    def compile(self, model, name, *arguments):
        plan = os.path.join(self.o.work, name + ".k31")
        self.tool("k31c", "compile", model, "--target", "cpu", "--cache-dir", os.path.join(self.o.work, "objects"), *arguments, "-o", plan)
        return plan

    def run(self, plan, *arguments):
        return json.loads(self.tool("k31-run", "bench", "--plan", plan, "--threads", self.o.threads, "--json", *arguments))["runs"]

    def bandwidth(self):
        program = os.path.join(self.o.work, "read_bandwidth")
        if not os.path.exists(program):
            subprocess.run(["g++", "-O2", "-std=c++17", "-march=native", "-x", "c++", "-", "-o", program, "-pthread"],
                           input=BANDWIDTH, text=True, check=True)
        return float(subprocess.run([program, str(2 << 30), str(self.o.threads)], stdout=subprocess.PIPE, text=True, check=True).stdout)

    # ---- models/tiny-k31 beside the reference, in turns

    def tiny(self):
        import torch
        torch.set_num_threads(self.o.threads)
        if not self.o.reference:
            sys.exit("tiny needs --reference, the path of k31_reference.py")
        spec = importlib.util.spec_from_file_location("k31_reference", self.o.reference)
        reference = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reference)
        model = os.path.join(ROOT, "models/tiny-k31")
        plan = self.compile(model, "tiny", "--max-context", 1024, "--max-batch", 1)
        steps, ours, theirs = 60, [], {"fp32": [], "bf16": []}
        models = {dtype: reference.Model(model, dtype) for dtype in theirs}
        caches = {}
        for dtype, m in models.items():
            caches[dtype] = m.new_cache()
            m.forward([i * 37 % 2000 for i in range(200)], caches[dtype])
        for _ in range(3):
            ours += self.run(plan, "--weights", model, "--batch", 1, "--context", 200, "--steps", 400)[0]["ms"]
            for dtype, m in models.items():
                for i in range(steps // 3):
                    start = time.perf_counter()
                    m.forward([i], caches[dtype])
                    theirs[dtype].append((time.perf_counter() - start) * 1e3)
        rate = lambda ms: f"{1e3 / statistics.median(ms):.1f} tokens/s (best {1e3 / min(ms):.1f})"
        print(f"models/tiny-k31, one sequence behind 200 tokens, {self.o.threads} threads")
        print(f"  k31, bf16                          {rate(ours)}")
        for dtype, ms in theirs.items():
            print(f"  PyTorch {torch.__version__:12s} reference {dtype} {rate(ms)}: k31 is {statistics.median(ms) / statistics.median(ours):.1f} times as fast "
                  f"({min(ms) / min(ours):.1f} at best)")

    # ---- a slice of the real shapes

    def slice_plan(self):
        if not self.o.slice:
            sys.exit("needs --slice, the folder of a checkpoint")
        return self.compile(self.o.slice, "slice", "--max-context", 4096, "--max-batch", 1, "--prefill-chunk", self.o.rows,
                            "--logit-rows", 1)

    def decode(self):
        plan = self.slice_plan()
        before = self.bandwidth()
        run = self.run(plan, "--synthetic-weights", "--batch", 1, "--context", 512, "--steps", 8, "--per-op")[0]
        after = self.bandwidth()
        moved = sum(op["bytes"] for op in run["ops"])
        speed = moved / run["median_ms"] / 1e6
        print(f"slice, decode of one sequence: {run['median_ms']:.1f} ms (best {min(run['ms']):.1f}), {moved / 1e9:.2f} GB, {speed:.2f} GB/s")
        print(f"  read bandwidth before {before:.2f} and after {after:.2f} GB/s: {speed / max(before, after) * 100:.0f} % of the larger")
        for op in run["ops"][:12]:
            print(f"  {op['ms']:9.2f} ms {op['gb_per_s']:6.2f} GB/s  {op['op']}")

    def products(self):
        """Rows of W, K and rows of x of each product by its label, those of merged ones by their parts; `experts` counts matrices."""
        with open(os.path.join(self.o.slice, "config.json")) as file:
            c = json.load(file)["text_config"]
        h, heads = c["hidden_size"], c["num_attention_heads"]
        d, kda = heads * c["v_head_dim"], c["linear_attn_config"]["num_heads"] * c["linear_attn_config"]["head_dim"]
        latent, inner, shared = c["routed_expert_hidden_size"], c["moe_intermediate_size"], c["moe_intermediate_size"] * c["num_shared_experts"]
        each = self.o.rows * c["num_experts_per_token"] // c["num_experts"]  # rows of an expert when all get the same
        dsa = c.get("dsa_config") or {"num_heads": 0, "head_dim": 0}
        one = {"self_attn.qkv_proj": (3 * kda, h), "self_attn.g_proj": (d, h), "self_attn.o_proj": (h, d),
               "self_attn.f_a_proj": (c["linear_attn_config"]["head_dim"], h),
               "self_attn.q_b_proj": (heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"]), c["q_lora_rank"]),
               "self_attn.q_a_proj": (c["q_lora_rank"], h), "self_attn.kv_a_proj_with_mqa": (c["kv_lora_rank"] + c["qk_rope_head_dim"], h),
               "self_attn.indexer.wk": (dsa["head_dim"], h), "self_attn.indexer.weights_proj": (dsa["num_heads"], h),
               "self_attn.indexer.wq_b": (dsa["num_heads"] * dsa["head_dim"], c["q_lora_rank"]),
               "mlp.gate_up_proj": (2 * c["intermediate_size"], h), "mlp.down_proj": (h, c["intermediate_size"]),
               "block_sparse_moe.routed_expert_down_proj": (latent, h), "block_sparse_moe.gate": (c["num_experts"], h),
               "block_sparse_moe.routed_expert_up_proj": (h, latent), "block_sparse_moe.shared_experts.gate_up_proj": (2 * shared, h),
               "block_sparse_moe.shared_experts.down_proj": (h, shared)}
        experts = {"block_sparse_moe.experts.w13": (2 * inner, latent), "block_sparse_moe.experts.w2": (latent, inner)}
        return {**{name: (n, k, self.o.rows, 1) for name, (n, k) in one.items()},
                **{name: (n, k, each, c["num_experts"]) for name, (n, k) in experts.items()}}

    def prefill(self):
        import torch
        torch.set_num_threads(self.o.threads)
        plan = self.slice_plan()
        runs = self.run(plan, "--synthetic-weights", "--batch", 1, "--context", 0, "--steps", 1, "--prefill", self.o.rows, "--per-op")
        run = runs[-1]
        print(f"slice, prefill of {run['tokens']} tokens: {run['median_ms']:.0f} ms, {run['tokens_per_s']:.0f} tokens/s")
        ours, theirs = 0, 0
        products = self.products()
        found = {}  # launches by the names of their parts
        for op in run["ops"]:
            names = tuple(next((name for name in products if part.endswith(name)), None) for part in op["op"].split("+"))
            if None not in names:
                found.setdefault(names, []).append(op)
        for names, ops in found.items():
            n, (_, k, rows, count), name = sum(products[part][0] for part in names), products[names[0]], "+".join(names)
            launches, ms = sum(op["launches"] for op in ops), sum(op["ms"] for op in ops)
            x, w = torch.randn(rows, k).to(torch.bfloat16), torch.randn(n, k).to(torch.bfloat16)
            torch.mm(x, w.t())
            times = []
            for _ in range(3):
                start = time.perf_counter()
                torch.mm(x, w.t())
                times.append((time.perf_counter() - start) * 1e3)
            base = statistics.median(times) * count * launches
            ours, theirs = ours + ms, theirs + base
            flop = 2e-9 * rows * n * k * count * launches
            print(f"  {name:48s} {rows:4d} x {n:5d} x {k:5d}: {ms:8.1f} ms {flop / ms:5.2f} TFLOP/s, torch.mm {base:8.1f} ms {flop / base:5.2f} TFLOP/s, {base / ms * 100:4.0f} %")
        print(f"  all of these: {ours:.0f} ms, torch.mm (PyTorch {torch.__version__}, oneDNN) {theirs:.0f} ms: {theirs / ours * 100:.0f} % of its speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=["tiny", "decode", "prefill"])
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="folder of the build")
    parser.add_argument("--work", default=os.path.join(ROOT, "build/bench-host"), help="folder for plans")
    parser.add_argument("--reference", help="path of k31_reference.py")
    parser.add_argument("--slice", help="folder of a checkpoint with K3.1's widths, data not needed")
    parser.add_argument("--rows", type=int, default=512, help="tokens of the prefill")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    for part in options.parts:
        getattr(Bench(options), part)()


if __name__ == "__main__":
    main()
