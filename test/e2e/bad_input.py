#!/usr/bin/env python3
"""Every kind of bad input, as a user would give it: exit code 1, one line on stderr that says what was found, what was expected and
what to do, nothing on stdout, and nothing partial left behind.

    bad_input.py --work DIR
"""
import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys

import damage_checkpoint

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SMALL = ["--target", "cpu", "--max-context", "256", "--max-batch", "1", "--prefill-chunk", "8", "--logit-rows", "1", "--cpu-level",
         "x86-64-v3"]
NOBODY = 65534
failures, refused = [], 0


def contents(folder):
    """{path: size} of all files below."""
    return {os.path.join(at, f): os.lstat(os.path.join(at, f)).st_size for at, _, files in os.walk(folder) for f in files}


def refuse(what, words, *command, code=1, stdout=False, folder=None, **options):
    """Runs a command that must be refused with a line that has the words; `folder` must be as it was before."""
    global refused
    before = contents(folder) if folder else None
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    wrong = []
    if done.returncode != code:
        wrong.append(f"exit code {done.returncode}, expected {code}")
    if done.stdout and not stdout:
        wrong.append(f"stdout {done.stdout[:200]!r}")
    start = os.path.basename(command[0]) + ": error: "
    if done.stderr.count("\n") != 1 or not done.stderr.startswith(start):
        wrong.append(f"stderr is not one line {start}...")
    wrong += [f"no {word!r}" for word in words if word not in done.stderr]
    if folder and contents(folder) != before:
        wrong.append(f"files changed: {sorted(set(contents(folder).items()) ^ set(before.items()))}")
    refused += 1
    if wrong:
        failures.append(f"{what}: {'; '.join(wrong)}\n  {done.stderr}")
    else:
        print(f"{what}: {done.stderr.strip()[:240]}")


def call(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def checkpoints(work):
    """Each fault, for the compiler and for a plan of the whole checkpoint."""
    good, bad, plan = os.path.join(work, "good"), os.path.join(work, "bad"), os.path.join(work, "good.k31")
    call(sys.executable, os.path.join(HERE, "random_checkpoint.py"), good, "--kind", "k31", "--layers", "4", "--shards", "3")
    compile_ = ["k31c", "compile", bad, *SMALL, "--cache-dir", os.path.join(work, "kernels"), "-o", os.path.join(work, "bad.k31")]
    call(*["k31c", "compile", good, *compile_[3:-1], plan])
    logits = ["k31-run", "logits", "--plan", plan, "--weights", bad, "--tokens", "1", "--out", os.path.join(work, "logits")]
    second = "model-00002-of-00003.safetensors"
    # What the compiler says, and what the runtime says.
    expected = {"truncate": ([second, "cut short"], [second, "has 100000 bytes, the plan expects"]),
                "swap": (["model-00001-of-00003.safetensors"], ["bytes, the plan expects"]),
                "remove": ([second, "which is not there; fetch it"], [second, "No such file"]),
                "exchange_sizes": (["model-0000"], ["bytes, the plan expects"]),
                "rename": (["o_proj.weight is missing"], ["the plan expects"]),
                "drop": ([second], ["the plan expects"]),
                "add": (["extra.weight is unknown"], ["the plan expects"]),
                "overlap": ([second], ["the plan expects"]), "overflow": ([second], ["the plan expects"]),
                "huge_shape": ([second], ["the plan expects"]), "long_header": ([second], [second]),
                "garbage_header": ([second], ["the plan expects"]),
                "newline_in_name": (["extra\\n\\x1b[31m.weight is unknown"], ["the plan expects"]),
                "newline_in_index": (["'a\\nb.safetensors', which is not there"], None)}  # the plan has names of its own
    assert set(expected) == set(damage_checkpoint.FAULTS)
    for fault, (of_compiler, of_runtime) in expected.items():
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        damage_checkpoint.FAULTS[fault](bad)
        refuse(f"compile, {fault}", of_compiler, *compile_, folder=work)
        if of_runtime is not None:
            refuse(f"run, {fault}", of_runtime, *logits, folder=work)
    shutil.rmtree(bad)
    refuse("compile, no folder", [bad, "does not exist; give the folder"], *compile_, folder=work)
    refuse("run, no folder", [bad, "No such file"], *logits, folder=work)
    ends = os.path.join(work, "line\nend")
    refuse("compile, a line end in a name", ["line\\nend", "does not exist; give the folder"], *compile_[:2], ends, *compile_[3:], folder=work)
    refuse("run, a line end in a name", ["line\\nend", "No such file"], *logits[:5], ends, *logits[6:], folder=work)
    with open(bad, "w") as f:
        f.write("a file")
    refuse("compile, a file for a folder", [bad], *compile_, folder=work)
    refuse("run, a file for a folder", [bad], *logits, folder=work)
    os.remove(bad)
    refuse("run, another checkpoint", ["No such file", "name the checkpoint that the plan was made from"], *logits[:5], os.path.join(ROOT, "models/tiny-k31"), *logits[6:],
           folder=work)
    shutil.copytree(good, bad)
    with open(os.path.join(bad, "config.json"), "a") as f:
        f.write("\n")
    refuse("run, another config", ["config.json' hashes to", "the plan expects", "name the checkpoint"], *logits, folder=work)
    shutil.rmtree(bad)

    shutil.copytree(good, bad)
    os.chmod(bad, 0), os.chmod(work, 0o777)  # the other user may write beside it: that is looked at first
    drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    # A folder that the other user may enter, so that the refused one is what is tested.
    if not drop or subprocess.run(["k31-run", "--help"], capture_output=True, **drop).returncode == 0 and readable(plan, drop):
        refuse("compile, unreadable", [bad + "/config.json", "Permission denied"], *compile_, **drop)
        refuse("run, unreadable", [bad + "/", "Permission denied"], *logits, **drop)
    else:
        print("unreadable folders: not tried, another user cannot enter this one")
    os.chmod(bad, 0o700), os.chmod(work, 0o755)
    return good, plan


def readable(path, drop):
    return subprocess.run(["cat", path], capture_output=True, **drop).returncode == 0


def plans(work, good, plan):
    """Damaged and foreign plans."""
    bad = os.path.join(work, "bad.k31")
    run = ["k31-run", "generate", "--plan", bad, "--weights", good, "--tokens", "1"]
    whole = open(plan, "rb").read()
    for at in (0, 4, 8, 100, len(whole) // 2, len(whole) - 40, len(whole) - 30, len(whole) - 20, len(whole) - 8, len(whole) - 1):
        data = bytearray(whole)
        data[at] ^= 0x10
        with open(bad, "wb") as f:
            f.write(data)
        refuse(f"plan, byte {at} flipped", [bad], *run, folder=work)
        refuse(f"plan inspected, byte {at} flipped", [bad], "k31c", "inspect", bad, folder=work)
    for length in (0, 31, 1000, len(whole) - 1):
        with open(bad, "wb") as f:
            f.write(whole[:length])
        refuse(f"plan, {length} bytes of it", [bad], *run, folder=work)
    call(sys.executable, os.path.join(ROOT, "test/plan/damage.py"), plan, bad, "version")
    refuse("plan of another version", [bad, "the plan has format 1.250, this program reads 1.0 to 1.", "compile the plan"], *run)

    text = os.path.join(work, "plan.mlir")
    call("k31-translate", "--plan-to-mlir", plan, "-o", text)
    original = open(text).read()
    for what, old, new, words in (
            ("target", 'target "cpu"', 'target "riscv"', ["'riscv'", "compile the plan for"]),
            ("processor", '"avx2"', '"avx9000"', ["avx9000", "fits this processor", "compile the plan for this machine"]),
            ("mesh", "plan.mesh tp 1 dp 1 ep 1 pp 1 node 1", "plan.mesh tp 1 dp 1 ep 1 pp 2 node 1",
             ["no entry belongs to stage 1 of 2"])):
        assert old in original, what
        with open(text, "w") as f:
            f.write(original.replace(old, new))
        call("k31-translate", "--mlir-to-plan", text, "-o", bad)
        refuse(f"plan of another {what}", words, *run, folder=work)
    os.remove(text), os.remove(bad)


def requests(work, good, plan):
    for command in (["generate"], ["logits", "--out", os.path.join(work, "logits")]):
        run = ["k31-run", *command, "--plan", plan, "--weights", good]
        refuse("an id outside", ["token id 99999", "vocabulary"], *run, "--tokens", "1,99999", folder=work)
        refuse("a negative id", ["token id -1", "vocabulary"], *run, "--tokens=1,-1", folder=work)
        refuse("a long prompt", ["the prompt has 257 tokens", "256", "--max-context"], *run, "--tokens", ",".join(["1"] * 257),
               folder=work)
        refuse("no weights", ["absent", "No such file"], *run[:-1], os.path.join(work, "absent"), "--tokens", "1", folder=work)
    ids = os.path.join(work, "ids")
    for content in ("1,2\n3;4\n", "1,2\n3,\n", "1,2\n\n3\n", "1,2\n99999999999\n"):
        with open(ids, "w") as f:
            f.write(content)
        refuse(f"ids {content!r}", [ids, "line 2: ", "is no token id; expected"], "k31-run", "generate", "--plan", plan,
               "--weights", good, "--tokens-file", ids, folder=work)
    os.remove(ids)


def full_disk(work, good, plan):
    """A plan, and logits, where there is no room for them: on a full file system where one can be mounted, and under a limit of the
    size of files everywhere."""
    out, cache = os.path.join(work, "full"), os.path.join(work, "kernels")
    os.makedirs(out, exist_ok=True)
    commands = {"plan": ["k31c", "compile", good, *SMALL, "--cache-dir", cache, "-o", os.path.join(out, "x.k31")],
                "logits": ["k31-run", "logits", "--plan", plan, "--weights", good, "--tokens", ",".join(["1"] * 200), "--out",
                           os.path.join(out, "x")]}

    def limited(size):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return {"stdout": True, "folder": work, "preexec_fn": limit}

    almost = os.path.getsize(plan) - 4096  # more than its machine code, which is written too
    for what, command in commands.items():
        refuse(f"{what}, files are limited", ["cannot write", "File too large", "make room"], *command, **limited(almost))
    refuse("machine code, files are limited", ["linking the host image failed", "File too large", "TMPDIR"], *commands["plan"],
           **limited(65536))
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):
        mount = [*unshare, "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" || exit 9; "$@"; s=$?; test -z "$(ls -A "$0")" || exit 8; exit $s',
                 out]
        if subprocess.run([*mount, "true"], capture_output=True).returncode:
            continue
        for what, command in commands.items():
            script = os.path.join(work, os.path.basename(command[0]))  # the name that stderr starts with
            with open(script, "w") as f:
                f.write("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in [*mount, *command]) + "\n")
            os.chmod(script, 0o700)
            refuse(f"{what}, the disk is full", ["cannot write", "No space left on device", "make room"], script, stdout=True, folder=work)
            os.remove(script)
        return
    print("full disk: no file system can be mounted here; the limit of file sizes was tried")


def work_folder(description):
    """The folder that the command line names with --work, new and empty."""
    ap = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True, help="folder to write to")
    work = os.path.abspath(ap.parse_args().work)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    return work


def main():
    work = work_folder(__doc__)
    good, plan = checkpoints(work)
    plans(work, good, plan)
    requests(work, good, plan)
    full_disk(work, good, plan)
    print(f"{refused} refusals, {len(failures)} wrong")
    if failures or refused < 70:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
