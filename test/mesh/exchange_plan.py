#!/usr/bin/env python3
"""A plan of collectives alone, for exchange_time: an entry for each kind and number of rows, of `--repeat` collectives over tp.

    exchange_plan.py OUT.k31 --target cpu|sm_90a --ranks 2 --transport library|peer [--rows 1,16] [--hidden 7168] [--repeat 100]

dispatch moves `rows` rows to each rank; its entries have as many rows as it has pieces of so many.
"""
import argparse
import os
import subprocess
import sys
import tempfile

KINDS = ("all_reduce", "reduce_scatter", "all_gather", "dispatch")
MODULE = """module attributes {{
  k31.model = {{family = "kimi-k3.1", layers = 3 : i64, layer_begin = 1 : i64, layer_end = 2 : i64, hidden = {hidden} : i64, vocab = 32 : i64,
               eos = array<i64: 7>, prefix = "model."}},
  k31.checkpoint = {{hash = "00112233445566778899aabbccddeeff", files = []}},
  k31.options = {{activations = "{dtype}", max_context = 256 : i64, max_batch = 1 : i64, prefill_chunk = 64 : i64, cache_tokens = 256 : i64,
                 logit_rows = 0 : i64, layer_begin = 1 : i64, layer_end = 2 : i64, target = "{target}", transport = "{transport}", overlap = "off"}},
  k31.mesh = {{tp = {ranks} : i64, dp = 1 : i64, ep = {ranks} : i64, pp = 1 : i64, node = {ranks} : i64}}}} {{
{entries}}}
"""
ENTRY = """  func.func @{kind}.{rows}(%x: {x} {{k31.input = "hidden"}}, %units: tensor<{ranks}xi32> {{k31.input = "counts"}},
      %s: tensor<1x6xi32> {{k31.input = "segments"}}, %r: tensor<{T}xi32> {{k31.input = "row_segment"}},
      %t: tensor<1x1xi32> {{k31.input = "block_table"}})
      -> ({x} {{k31.output = "hidden"}}) attributes {{k31.entry = {{kind = "prefill", rows = {T} : i64, segments = 1 : i64, logit_rows = 0 : i64}}}} {{
{ops}    return %x : {x}
  }}
"""


def entry(kind, rows, o):
    T = rows * o.ranks if kind in ("dispatch", "reduce_scatter") else rows
    element = {"bf16": "bf16", "fp32": "f32"}[o.dtype]
    x = f"tensor<{T}x{o.hidden}x{element}>"
    operands = f"%x live %units over tp size {o.ranks} unit 16" if kind == "dispatch" else f"%x over tp size {o.ranks}"
    types = f"{x}, tensor<{o.ranks}xi32>" if kind == "dispatch" else x
    ops = "".join(f"    %{i} = coll.{kind} {operands} : {types}\n" for i in range(o.repeat))
    return ENTRY.format(kind=kind, rows=rows, T=T, x=x, ranks=o.ranks, ops=ops)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--target", required=True)
    ap.add_argument("--transport", required=True)
    ap.add_argument("--ranks", type=int, default=2)
    ap.add_argument("--rows", default="1,16,64,256,1024,4096")
    ap.add_argument("--kinds", default=",".join(KINDS))
    ap.add_argument("--hidden", type=int, default=7168)
    ap.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    ap.add_argument("--repeat", type=int, default=100)
    ap.add_argument("--bin", default="", help="folder of k31-opt and k31-translate; else from PATH")
    o = ap.parse_args()
    entries = "".join(entry(kind, int(rows), o) for kind in o.kinds.split(",") for rows in o.rows.split(","))
    with tempfile.TemporaryDirectory() as folder:
        source, plan = os.path.join(folder, "in.mlir"), os.path.join(folder, "plan.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write(MODULE.format(entries=entries, **vars(o)))
        for line in ([os.path.join(o.bin, "k31-opt"), source, f"--select-kernels=target={o.target}", "--convert-ops-to-plan", "--schedule",
                      "--assign-memory", f"--compile-kernels=target={o.target}", "--check-plan", "-o", plan],
                     [os.path.join(o.bin, "k31-translate"), "--mlir-to-plan", plan, "-o", o.out]):
            done = subprocess.run(line, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(line)[:200]}: exit code {done.returncode}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
