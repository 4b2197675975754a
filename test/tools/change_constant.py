"""Doubles a constant of the fused region of the first product of experts, in level-2 IR: change_constant.py FROM TO."""
import re
import sys

source, target = sys.argv[1:]
text = open(source, encoding="utf-8").read()
changed = 0


def change(region):
    """The first float constant that is not 0 or 1: the bound of the activation."""
    global changed
    for found in re.finditer(r"arith\.constant (?:\(?)([-+0-9.eE]+) : f32", region):
        if float(found.group(1)) not in (0.0, 1.0, -1.0):
            changed += 1
            return region[:found.start(1)] + f"{2 * float(found.group(1)):e}" + region[found.end(1):]
    return region


# Every bucket has its own body of each kind of layer.
pieces = re.split(r"(?=%\S+ = moe\.grouped_linear)", text)
out = [pieces[0]]
for piece in pieces[1:]:
    end = piece.find("nn.yield")
    out.append(change(piece[:end]) + piece[end:] if 0 <= end and "fused" in piece[:end] else piece)
assert changed, "no fused region with a constant behind moe.grouped_linear"
open(target, "w", encoding="utf-8").write("".join(out))
