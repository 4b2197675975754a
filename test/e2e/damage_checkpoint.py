"""Faults of sharded checkpoints, for tests: functions that change a folder."""
import json
import os
import struct

INDEX = "model.safetensors.index.json"


def shard(folder, number, count=3):
    return os.path.join(folder, f"model-{number:05d}-of-{count:05d}.safetensors")


def read(path):
    """(header, data) of a safetensors file."""
    with open(path, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        return json.loads(f.read(length)), f.read()


def write(path, header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def index(folder, change):
    path = os.path.join(folder, INDEX)
    with open(path) as f:
        content = json.load(f)
    change(content["weight_map"])
    with open(path, "w") as f:
        json.dump(content, f)


def change_header(folder, change):
    """Changes the header of the second shard; returns a tensor's name that the change may use."""
    header, data = read(shard(folder, 2))
    name = next(n for n in header if n.endswith("o_proj.weight"))
    change(header, name)
    write(shard(folder, 2), header, data)
    return name


def truncate(folder):
    os.truncate(shard(folder, 2), 100000)


def swap(folder):
    a, b = shard(folder, 1), shard(folder, 2)
    os.rename(a, a + ".x"), os.rename(b, a), os.rename(a + ".x", b)


def remove(folder):
    os.remove(shard(folder, 2))


def exchange_sizes(folder):
    a, b = shard(folder, 1), shard(folder, 2)
    size_a, size_b = os.path.getsize(a), os.path.getsize(b)
    os.truncate(a, size_b), os.truncate(b, size_a)


def rename(folder):
    def change(header, name):
        header["renamed.weight"] = header.pop(name)
    name = change_header(folder, change)
    index(folder, lambda files: files.__setitem__("renamed.weight", files.pop(name)))


def drop(folder):
    """The tensor goes, its bytes stay: first as a hole in the file, which is refused as such."""
    name = change_header(folder, lambda header, name: header.pop(name))
    index(folder, lambda files: files.pop(name))


def add(folder, tensor="extra.weight"):
    def change(header, name):
        header[tensor] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    change_header(folder, change)
    index(folder, lambda files: files.__setitem__(tensor, os.path.basename(shard(folder, 2))))


def overlap(folder):
    def change(header, name):
        other = next(n for n in header if n != name and n != "__metadata__")
        begin = header[other]["data_offsets"][0]
        size = header[name]["data_offsets"][1] - header[name]["data_offsets"][0]
        header[name]["data_offsets"] = [begin, begin + size]
    change_header(folder, change)


def overflow(folder):
    change_header(folder, lambda header, name: header[name].update(data_offsets=[2 ** 63, 2 ** 64 - 1]))


def huge_shape(folder):
    change_header(folder, lambda header, name: header[name].update(shape=[2 ** 40, 2 ** 40]))


def long_header(folder):
    with open(shard(folder, 2), "r+b") as f:
        f.write(struct.pack("<Q", 2 ** 62))


def garbage_header(folder):
    with open(shard(folder, 2), "r+b") as f:
        f.seek(8)
        f.write(b"\x00" * 40)


def newline_in_name(folder):
    """A tensor whose name has a line end and a terminal's escape in it."""
    add(folder, "extra\n\x1b[31m.weight")


def newline_in_index(folder):
    index(folder, lambda files: files.__setitem__("extra.weight", "a\nb.safetensors"))


FAULTS = {f.__name__: f for f in (truncate, swap, remove, exchange_sizes, rename, drop, add, overlap, overflow, huge_shape, long_header,
                                  garbage_header, newline_in_name, newline_in_index)}
