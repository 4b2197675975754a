"""Checks the JSON of explain against that of inspect, of one plan: explain_facts.py EXPLAIN INSPECT."""
import json
import sys

explained, inspected = (json.load(open(path)) for path in sys.argv[1:])
gpu = explained["target"] != "cpu"
compared = together = 0
for entry, facts in zip(explained["entries"], inspected["entries"], strict=True):
    assert entry["name"] == facts["name"], (entry["name"], facts["name"])
    assert [note["about"] for note in entry["notes"]].count("overlap") == 1, entry["notes"]
    steps = 0
    for section in entry["sections"]:
        steps += len(section["steps"]) * max(len(section["layers"]), 1)
        for step in section["steps"]:
            if step["what"] == "copy":
                continue
            if " by " in step["what"]:
                assert [note["about"] for note in step["notes"]].count("transport") == 1, step
                continue
            kernel = [note for note in step["notes"] if note["about"] == "kernel"]
            assert len(kernel) == 1 and (gpu or kernel[0]["choice"] == step["size"]), step
            candidates = kernel[0].get("candidates", [])
            if candidates:
                best = min(candidates, key=lambda one: one["us"])
                assert best["choice"] == kernel[0]["choice"], step
            compared += len(candidates) > 1
            names = [one["name"] for one in section["steps"]]
            for other in step.get("together", []):
                assert " of layer " in other or other in names, (step, other)
                together += 1
    assert steps == facts["commands"], (steps, facts)
    layers = [layer for section in entry["sections"] for layer in section["layers"]]
    assert sorted(layers) == list(range(9)), layers
assert compared > 50 and bool(together) != gpu, (compared, together)
