#!/usr/bin/env python3
"""README.md and docs/: runs the commands, compares the excerpts, resolves the links. Exit 1 when something is not as written.

    check.py ROOT FOLDER       the tools are on PATH; FOLDER is made anew and keeps what the commands write

In fenced blocks:
  ```sh            lines that begin with k31c, k31-run, k31-opt or k31-translate are run, in the order of the documents; a line
                   that ends in a backslash goes on; a command that was run before is not run again
  ```text output   lines of what the commands of the last sh block printed
  ```LANG FILE     lines of that file: one that a command wrote, or one of the repository
The table of includes in docs/overview.md must be that of test/check_includes.py.
Lines of an excerpt stand in the output or file in the same order; "..." stands for any text, a line of "..." is left out.
"""
import os
import re
import shutil
import subprocess
import sys

TOOLS = ("k31c", "k31-run", "k31-opt", "k31-translate")
DOCUMENTS = ("README.md", "docs/overview.md", "docs/plan-format.md", "docs/kernels.md", "docs/add-an-op.md", "docs/mesh.md",
             "docs/deploying.md")
FENCE = re.compile(r"^```(.*)$")
LINK = re.compile(r"\]\(([^)\s]+)\)")


class Document:
    """The blocks and links of one file."""

    def __init__(self, root, path):
        self.path = path
        self.blocks, self.links, self.anchors = [], [], set()  # (line, info, lines), (line, target), slugs of headings
        block = None
        for number, line in enumerate(open(os.path.join(root, path), encoding="utf-8").read().splitlines(), 1):
            fence = FENCE.match(line)
            if fence and block is None:
                block = (number, fence.group(1).split(), [])
            elif fence:
                self.blocks.append(block)
                block = None
            elif block is not None:
                block[2].append(line)
            else:
                self.links += [(number, target) for target in LINK.findall(line)]
                if line.startswith("#"):
                    words = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
                    self.anchors.add(words.replace(" ", "-"))
        if block is not None:
            raise SystemExit(f"{path}:{block[0]}: the fenced block is never closed")


def commands(lines):
    """Commands of a block, continued lines joined."""
    text = "\n".join(lines).replace("\\\n", " ")
    return [" ".join(line.split()) for line in text.splitlines() if line.split(" ")[0] in TOOLS]


def missing(excerpt, text):
    """The first line of the excerpt that does not follow the ones before it; None when all are there."""
    have = [" ".join(line.split()) for line in text.splitlines()]
    at = 0
    for line in (" ".join(line.split()) for line in excerpt):
        if line in ("", "..."):
            continue
        pattern = re.compile(".*".join(re.escape(part.strip()).replace(r"\ ", " *") for part in line.split("...")) + "$")
        at = next((i + 1 for i in range(at, len(have)) if pattern.match(have[i])), None)
        if at is None:
            return line
    return None


def include_faults(root):
    """Where the table of docs/overview.md differs from the data of test/check_includes.py."""
    sys.path.insert(0, os.path.join(root, "test"))
    import check_includes
    text = open(os.path.join(root, "docs/overview.md"), encoding="utf-8").read()
    section = text.split("## Who may include whom")[1].split("\n## ")[0]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:3]] for line in section.splitlines() if line.startswith("| `")]
    written = {folder[0]: set(allowed) for folder, allowed in rows}
    data = {folder: {prefix.rstrip("/") for prefix in rule[0]} for folder, rule in check_includes.TABLE.items()}
    return [f"docs/overview.md, includes of {folder}: the table says {sorted(written.get(folder, {'no row'}))}, "
            f"test/check_includes.py {sorted(data.get(folder, {'no rule'}))}"
            for folder in sorted(written.keys() | data.keys()) if written.get(folder) != data.get(folder)]


def main(root, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in ("models", "test"):
        os.symlink(os.path.join(root, name), os.path.join(folder, name))
    faults, count, outputs = include_faults(root), {"commands": 0, "excerpts": 0, "links": 0}, {}
    for path in DOCUMENTS:
        document, printed = Document(root, path), ""
        for number, info, lines in document.blocks:
            where = f"{path}:{number}"
            if info == ["sh"]:
                printed = ""
                for command in commands(lines):
                    if command not in outputs:
                        done = subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, text=True, timeout=600)
                        if done.returncode:
                            faults.append(f"{where}: exit code {done.returncode} of: {command}\n{done.stdout}")
                        outputs[command] = done.stdout
                        count["commands"] += 1
                    printed += outputs[command]
                continue
            if len(info) != 2:
                continue
            text = printed
            if info != ["text", "output"]:
                places = [os.path.join(base, info[1]) for base in (folder, root)]
                place = next((p for p in places if os.path.isfile(p)), None)
                if not place:
                    faults.append(f"{where}: there is no file {info[1]}")
                    continue
                text = open(place, encoding="utf-8", errors="replace").read()
            count["excerpts"] += 1
            line = missing(lines, text)
            if line is not None:
                what = "the output" if info == ["text", "output"] else info[1]
                faults.append(f"{where}: {what} has no such line at this place, correct the document: {line}")

    pages = ["README.md"] + sorted(os.path.relpath(os.path.join(parent, name), root)
                                   for parent, _, names in os.walk(os.path.join(root, "docs")) for name in names
                                   if name.endswith(".md"))
    known = {path: Document(root, path) for path in pages}
    for path, document in known.items():
        for number, target in document.links:
            if re.match(r"[a-z]+:", target):
                continue  # an address on the web
            count["links"] += 1
            file, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(os.path.join(root, to)):
                faults.append(f"{path}:{number}: the link {target} leads nowhere")
            elif anchor and to in known and anchor not in known[to].anchors:
                faults.append(f"{path}:{number}: {to} has no heading #{anchor}")
    for fault in faults:
        print(fault)
    print(", ".join(f"{n} {what}" for what, n in count.items()) + f", {len(faults)} faults")
    return 1 if faults or not all(count.values()) else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])))
