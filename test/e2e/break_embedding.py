"""break_embedding.py FOLDER ID: the first value of the id's embedding row in FOLDER/model.safetensors becomes NaN."""
import json
import os
import struct
import sys

folder, number = sys.argv[1], int(sys.argv[2])
with open(os.path.join(folder, "model.safetensors"), "r+b") as f:
    length = struct.unpack("<Q", f.read(8))[0]
    header = json.loads(f.read(length))
    name = next(n for n in header if n.endswith("embed_tokens.weight"))
    rows, columns = header[name]["shape"]
    assert header[name]["dtype"] == "BF16" and number < rows
    f.seek(8 + length + header[name]["data_offsets"][0] + number * columns * 2)
    f.write(struct.pack("<H", 0x7FC0))
