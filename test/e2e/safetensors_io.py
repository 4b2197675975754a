"""Safetensors files as numpy arrays, for the end-to-end tests."""
import json

import numpy as np

TYPES = {"F32": np.float32, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "BF16": np.uint16}


def read_safetensors(path):
    """{name: array}; BF16 becomes float32."""
    with open(path, "rb") as f:
        raw = f.read()
    size = int.from_bytes(raw[:8], "little")
    out = {}
    for name, t in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        a = np.frombuffer(raw[8 + size + begin:8 + size + end], TYPES[t["dtype"]]).reshape(t["shape"])
        out[name] = (a.astype(np.uint32) << 16).view(np.float32) if t["dtype"] == "BF16" else a
    return out
