"""The collectives of each layer of an entry: reads `k31c inspect --collectives`, prints a line for each run of equal layers.

    k31c inspect PLAN --collectives | collectives.py ENTRY
"""
import re
import sys


def layers(text, entry):
    """(layer, or what stands before or between layers) -> its collectives, in order."""
    found, inside = {}, False
    for line in text.splitlines():
        if line.startswith("entry "):
            inside = line.split()[1].rstrip(":") == entry
        elif inside and line.split()[:1] == ["Collective"]:
            _, label, op, axis = line.split()[:4]
            layer = re.match(r"layers\.(\d+)\.", label)
            found.setdefault(int(layer[1]) if layer else label, []).append(f"{op} {axis}")
    return found


def main():
    found = layers(sys.stdin.read(), sys.argv[1])
    if not found:
        sys.exit(f"no collectives of an entry {sys.argv[1]}")
    runs = []  # first, last, collectives
    for layer, collectives in found.items():
        if runs and isinstance(layer, int) and runs[-1][1] == layer - 1 and runs[-1][2] == collectives:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer, collectives])
    for first, last, collectives in runs:
        name = f"layers {first} to {last}" if isinstance(first, int) else first
        print(f"{name}: {len(collectives)}: {', '.join(collectives)}")


if __name__ == "__main__":
    main()
