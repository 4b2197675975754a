"""Copies a checkpoint with one bit of one tensor changed: change_weight.py FROM TO TENSOR."""
import json
import os
import shutil
import struct
import sys

source, target, name = sys.argv[1:]
shutil.copytree(source, target, dirs_exist_ok=True)
path = os.path.join(target, "model.safetensors")
os.chmod(path, 0o644)
with open(path, "r+b") as file:
    length = struct.unpack("<Q", file.read(8))[0]
    begin, end = json.loads(file.read(length))[name]["data_offsets"]
    place = 8 + length + begin + (end - begin) // 4 * 2 + 1  # the high byte of a bf16 value in the middle
    file.seek(place)
    byte = file.read(1)[0]
    file.seek(place)
    file.write(bytes([byte ^ 0x80]))  # its sign
