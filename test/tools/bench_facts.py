"""Checks the JSON of a decode benchmark of the test model: bench_facts.py FILE."""
import json
import sys

run = json.load(open(sys.argv[1]))["runs"][0]
assert (run["kind"], run["entry"], run["batch"], run["tokens"], run["context"]) == ("decode", "decode_b4", 4, 4, 300), run
assert len(run["ms"]) == 2 and run["median_ms"] in run["ms"], run
ops = run["ops"]
assert abs(sum(op["share"] for op in ops) - 1) < 1e-6, ops


def total(name):
    found = [op for op in ops if name in op["op"] + " " + op["kernel"]]
    assert found, name
    return sum(op["bytes"] for op in found)


# lm_head: 2304 rows of 192 bf16 values, 4 rows in, 4 rows of fp32 logits out.
assert total("lm_head") == 2304 * 192 * 2 + 4 * 192 * 2 + 4 * 2304 * 4 + 4, total("lm_head")
# KDA: each of 6 layers reads and writes the states of 4 sequences.
states = 4 * 2 * 786432
assert states <= total("attn.kda") < states * 1.1, total("attn.kda")
