"""Checks the JSON of `k31c inspect`, from standard input, on test/plan/small.mlir."""
import json
import sys

plan = json.load(sys.stdin)
assert plan["version"] == "1.5" and plan["target"] == "cpu", plan
assert plan["mesh"] == {"tp": 2, "dp": 1, "ep": 2, "pp": 1, "node": 2} and plan["ranks"] == 2, plan
assert [entry["name"] for entry in plan["entries"]] == ["decode_b2"], plan
memory = plan["memory"]
assert memory["total"] == sum(memory["arenas"].values()) + memory["reserve"] == sum(memory["lines"].values()), memory
assert memory["bytes_per_token"] == 2 and memory["bytes_per_sequence"] == 128, memory
assert len(plan["schedule"]["decode_b2"]) == 6 and len(plan["collectives"]["decode_b2"]) == 1, plan
assert plan["kernels"][0]["config"] == "rows = 2" and plan["weights"][0]["members"] == 2, plan
