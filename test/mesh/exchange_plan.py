#!/usr/bin/env python3
"""A plan of collectives alone, for exchange_time: an entry for each kind and number of rows, of `--repeat` collectives over tp.

    exchange_plan.py OUT.k31 --target cpu|sm_90a --ranks 2 --transport library|peer [--rows 1,16] [--hidden 7168] [--repeat 100]

dispatch moves `rows` rows to each rank; its entries have as many rows as it has pieces of so many. The kinds mix and norm are an all_reduce and the
row op on it, in one launch or in two by --fuse-sums: a residual mix of nine sources and a norm as behind attention, and a norm alone.
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
  k31.checkpoint = {{hash = "00112233445566778899aabbccddeeff", files = [{{name = "made-up", bytes = 1000000 : i64}}]}},
  k31.options = {{activations = "{dtype}", max_context = 256 : i64, max_batch = 1 : i64, prefill_chunk = 64 : i64, cache_tokens = 256 : i64,
                 logit_rows = 0 : i64, layer_begin = 1 : i64, layer_end = 2 : i64, target = "{target}", transport = "{transport}", overlap = "off",
                 fuse_sums = "{fuse_sums}"}},
  k31.mesh = {{tp = {ranks} : i64, dp = 1 : i64, ep = {ranks} : i64, pp = 1 : i64, node = {ranks} : i64}}}} {{
  nn.tensor @query.0 "query" members [] files [0] offsets [0] : tensor<{hidden}xbf16>
  nn.tensor @gain.0 "gain" members [] files [0] offsets [{column}] : tensor<{hidden}xbf16>
  nn.stack @query [@query.0] rows [{hidden}] : tensor<{hidden}xbf16>
  nn.stack @gain [@gain.0] rows [{hidden}] : tensor<{hidden}xbf16>
{entries}}}
"""
ENTRY = """  func.func @{kind}.{rows}(%x: {x} {{k31.input = "hidden"}}{bank}, %units: tensor<{ranks}xi32> {{k31.input = "counts"}},
      %s: tensor<1x6xi32> {{k31.input = "segments"}}, %r: tensor<{T}xi32> {{k31.input = "row_segment"}},
      %t: tensor<1x1xi32> {{k31.input = "block_table"}}, %live: tensor<1xi32> {{k31.input = "counts", k31.offset = 0 : i64}})
      -> ({x} {{k31.output = "hidden"}}) attributes {{k31.entry = {{kind = "prefill", rows = {T} : i64, segments = 1 : i64, logit_rows = 0 : i64}}}} {{
{ops}    return %x : {x}
  }}
"""


BLOCKS = 8  # finished residual blocks of a mix; the ninth source is the prefix and the sum


class Region:
    """Lines of a region: op(name, operands) gives the name of its value."""

    def __init__(self):
        self.lines = []

    def op(self, name, *operands):
        self.lines.append(f"      %v{len(self.lines)} = {name} {', '.join(operands)} : f32\n")
        return f"%v{len(self.lines) - 1}"

    def constant(self, value):
        self.lines.append(f"      %v{len(self.lines)} = arith.constant {value:e} : f32\n")
        return f"%v{len(self.lines) - 1}"

    def root(self, value, columns):
        """1 / sqrt(mean of squares + 1e-5)"""
        mean = self.op("arith.mulf", self.op("nn.sum", self.op("arith.mulf", value, value)), self.constant(1 / columns))
        return self.op("math.rsqrt", self.op("arith.addf", mean, self.constant(1e-5)))


def norm_of_sum(o, x):
    region = Region()
    normed = region.op("arith.mulf", region.op("arith.mulf", "%sum", region.root("%sum", o.hidden)), "%g")
    return f"""nn.row ["rms_norm"] live %live (%SUM, %gain) {{
    ^bb0(%sum: f32, %g: f32):
{''.join(region.lines)}      nn.yield {normed} : f32
    }} : (tensor<1xi32>, {x}, tensor<{o.hidden}xbf16>) -> {x}
"""


def mix_of_sum(o, x):
    """prefix + sum; a softmax of scores, the sources' products with a query over their norms, mixes it with the blocks; a norm."""
    region = Region()
    sources = [f"%s{i}" for i in range(BLOCKS)] + [region.op("arith.addf", "%p", "%sum")]
    scores = [region.op("arith.mulf", region.root(s, o.hidden), region.op("nn.sum", region.op("arith.mulf", s, "%q"))) for s in sources]
    largest = scores[0]
    for score in scores[1:]:
        largest = region.op("arith.maximumf", largest, score)
    weights = [region.op("math.exp", region.op("arith.subf", score, largest)) for score in scores]
    total, mixed = weights[0], region.op("arith.mulf", weights[0], sources[0])
    for weight, source in zip(weights[1:], sources[1:]):
        total, mixed = region.op("arith.addf", total, weight), region.op("arith.addf", mixed, region.op("arith.mulf", weight, source))
    mixed = region.op("arith.divf", mixed, total)
    normed = region.op("arith.mulf", region.op("arith.mulf", mixed, region.root(mixed, o.hidden)), "%g")
    blocks, arguments = ", ".join(f"%b{i}" for i in range(BLOCKS)), ", ".join(f"%s{i}: f32" for i in range(BLOCKS))
    columns = ", ".join([f"tensor<{o.hidden}xbf16>"] * 2)
    return f"""nn.row ["add", "attn_res_mix", "rms_norm"] live %live (%x, %SUM, {blocks}, %query, %gain) {{
    ^bb0(%p: f32, %sum: f32, {arguments}, %q: f32, %g: f32):
{''.join(region.lines)}      nn.yield {normed}, {sources[-1]} : f32, f32
    }} : (tensor<1xi32>, {", ".join([x] * (BLOCKS + 2))}, {columns}) -> ({x}, {x})
"""


ROWS = {"mix": mix_of_sum, "norm": norm_of_sum}


def entry(kind, rows, o):
    T = rows * o.ranks if kind in ("dispatch", "reduce_scatter") else rows
    element = {"bf16": "bf16", "fp32": "f32"}[o.dtype]
    x = f"tensor<{T}x{o.hidden}x{element}>"
    if kind in ROWS:
        blocks, results = (BLOCKS, ":2") if kind == "mix" else (0, "")
        bank = "".join(f', %b{i}: {x} {{k31.input = "bank"}}' for i in range(blocks))
        ops = "".join(f"    %{name} = nn.weight @{name} : tensor<{o.hidden}xbf16>\n" for name in ("query", "gain"))
        row = ROWS[kind](o, x)
        ops += "".join(f"    %{i} = coll.all_reduce %x over tp size {o.ranks} : {x}\n    %r{i}{results} = {row.replace('%SUM', f'%{i}')}"
                       for i in range(o.repeat))
        return ENTRY.format(kind=kind, rows=rows, T=T, x=x, bank=bank, ranks=o.ranks, ops=ops)
    operands = f"%x live %units over tp size {o.ranks} unit 16" if kind == "dispatch" else f"%x over tp size {o.ranks}"
    types = f"{x}, tensor<{o.ranks}xi32>" if kind == "dispatch" else x
    ops = "".join(f"    %{i} = coll.{kind} {operands} : {types}\n" for i in range(o.repeat))
    return ENTRY.format(kind=kind, rows=rows, T=T, x=x, bank="", ranks=o.ranks, ops=ops)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--target", required=True)
    ap.add_argument("--transport", required=True)
    ap.add_argument("--ranks", type=int, default=2)
    ap.add_argument("--rows", default="1,16,64,256,1024,4096")
    ap.add_argument("--kinds", default=",".join(KINDS))
    ap.add_argument("--hidden", type=int, default=7168)
    ap.add_argument("--fuse-sums", choices=["on", "off"], default="off")
    ap.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    ap.add_argument("--repeat", type=int, default=100)
    ap.add_argument("--bin", default="", help="folder of k31-opt and k31-translate; else from PATH")
    o = ap.parse_args()
    entries = "".join(entry(kind, int(rows), o) for kind in o.kinds.split(",") for rows in o.rows.split(","))
    with tempfile.TemporaryDirectory() as folder:
        source, plan = os.path.join(folder, "in.mlir"), os.path.join(folder, "plan.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write(MODULE.format(entries=entries, column=2 * o.hidden, **vars(o)))
        for line in ([os.path.join(o.bin, "k31-opt"), source, f"--select-kernels=target={o.target}", "--convert-ops-to-plan", "--schedule",
                      "--assign-memory", f"--compile-kernels=target={o.target}", "--check-plan", "-o", plan],
                     [os.path.join(o.bin, "k31-translate"), "--mlir-to-plan", plan, "-o", o.out]):
            done = subprocess.run(line, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(line)[:200]}: exit code {done.returncode}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
