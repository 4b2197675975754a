#!/usr/bin/env python3
"""One rank that reads a bad file, or is killed, ends all ranks soon, with the first reason printed once and exit code 1.

    faults.py --launch mpirun|self --work DIR [--bin DIR] [--plan FILE]

--plan: a plan of models/tiny-k31 for two ranks, of any target; without it k31c makes one for the host.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

from mpi import mpirun

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "models/tiny-k31")
SECONDS = 30


def children(pid):
    """Processes below this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found += [int(name), *children(int(name))]
    return found


def is_rank(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].endswith(b"k31-run")
    except OSError:
        return False


def start(o, *arguments):
    launcher = mpirun(2) if o.launch == "mpirun" else []
    return subprocess.Popen([*launcher, os.path.join(o.bin, "k31-run"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def check(what, process, begin, expected):
    """The end of a run: exit code 1, within the time, one line of ours that says why, and no rank left behind."""
    try:
        _, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        for pid in children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        print(f"{what}: still running after {SECONDS} s  FAILED")
        return False
    seconds = time.monotonic() - begin
    lines = [line for line in errors.splitlines() if "k31-run: error:" in line]
    ok = process.returncode == 1 and len(lines) == 1 and expected in lines[0]
    print(f"{what}: exit code {process.returncode} after {seconds:.1f} s, {lines}{'' if ok else '  FAILED: ' + errors}")
    return ok


def compiled(o, *options):
    plan = os.path.join(o.work, f"tiny-tp2{''.join(options)}.k31")
    subprocess.run([os.path.join(o.bin, "k31c"), "compile", MODEL, "--target", "cpu", "--cpu-level", "x86-64-v3", "--mesh", "tp=2",
                    "--max-context", "1024", "--max-batch", "2", "--prefill-chunk", "64", "-o", plan, *options,
                    "--cache-dir", os.path.join(os.path.dirname(os.path.abspath(o.work)), "kernels")],
                   check=True, stdout=subprocess.PIPE)
    return plan


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True)
    ap.add_argument("--bin", default="")
    ap.add_argument("--plan")
    ap.add_argument("--launch", default="self", choices=["mpirun", "self"])
    o = ap.parse_args()
    os.makedirs(o.work, exist_ok=True)
    plan = o.plan or compiled(o)
    short_text = ["generate", "--plan", plan, "--threads", "1", "--tokens", "1,2,3", "--ignore-eos", "--max-tokens", "2"]
    generate = [*short_text[:-1], "1000"]
    ok = True

    # A file that is cut short behind what the headers say; every rank sees it.
    short = os.path.join(o.work, "short")
    shutil.copytree(MODEL, short, dirs_exist_ok=True)
    os.chmod(os.path.join(short, "model.safetensors"), 0o644)
    os.truncate(os.path.join(short, "model.safetensors"), os.path.getsize(os.path.join(MODEL, "model.safetensors")) - 64)
    begin = time.monotonic()
    ok &= check("short file", start(o, *generate, "--weights", short), begin, "rank 0: ")

    # A rank that is killed while the ranks generate. Of the processes that run k31-run the last one is a rank for sure.
    for what, number in (("last rank killed", -1), ("first rank killed", 0)):
        begin = time.monotonic()
        process = start(o, *generate, "--weights", MODEL)
        os.set_blocking(process.stdout.fileno(), False)
        deadline = begin + 60
        while not process.stdout.read(1):  # the first text: all ranks run
            if time.monotonic() > deadline or process.poll() is not None:
                process.kill()
                print(f"{what}: no text after {time.monotonic() - begin:.0f} s: {process.stderr.read()}  FAILED")
                return 1
            time.sleep(0.05)
        os.set_blocking(process.stdout.fileno(), True)
        ranks = sorted(pid for pid in children(process.pid) if is_rank(pid))
        begin = time.monotonic()
        os.kill(ranks[number], signal.SIGKILL)
        if o.launch == "self":
            ok &= check(what, process, begin, "ended by signal 9 (Killed)")
        else:
            # mpirun itself may end the others before they speak; its exit code and the time count.
            _, errors = process.communicate(timeout=SECONDS)
            lines = [line for line in errors.splitlines() if "k31-run: error:" in line]
            good = process.returncode != 0 and len(lines) <= 1
            ok &= good
            print(f"{what}: exit code {process.returncode} after {time.monotonic() - begin:.1f} s, {lines}{'' if good else '  FAILED'}")
        left = [pid for pid in ranks if is_rank(pid)]
        if left:
            print(f"{what}: {left} still run  FAILED")
            ok = False

    # k31-run without its MPI module beside it: it starts the ranks of one host by itself; under a launcher it says what is missing.
    alone = os.path.join(o.work, "alone")
    os.makedirs(alone, exist_ok=True)
    shutil.copy(os.path.join(o.bin, "k31-run") if o.bin else shutil.which("k31-run"), alone)
    process = start(argparse.Namespace(launch=o.launch, bin=alone), *short_text, "--weights", MODEL)
    text, errors = process.communicate(timeout=SECONDS)
    if o.launch == "self":
        good = process.returncode == 0 and text and not errors
    else:
        lines = [line for line in errors.splitlines() if "k31-run: error:" in line]
        good = process.returncode == 1 and lines and all("its MPI module cannot be opened" in line for line in lines)
    ok &= bool(good)
    print(f"no MPI module: exit code {process.returncode}{'' if good else '  FAILED: ' + text + errors}")

    # Another number of processes than ranks.
    if o.launch == "mpirun":
        begin = time.monotonic()
        process = subprocess.Popen([*mpirun(3), os.path.join(o.bin, "k31-run"), *generate, "--weights", MODEL],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ok &= check("three processes", process, begin, "the plan is for 2 ranks (tp=2,dp=1,pp=1), but 3 processes were started")
        # Another plan for as many ranks, as an old copy on one of the hosts may be.
        begin = time.monotonic()
        other = compiled(o, "--transport", "peer")
        own = [*generate, "--weights", MODEL]
        process = subprocess.Popen([*mpirun(1), os.path.join(o.bin, "k31-run"), *own, ":", "-n", "1", os.path.join(o.bin, "k31-run"),
                                    *[other if argument == plan else argument for argument in own]],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ok &= check("two plans", process, begin, "rank 1 has a plan file with hash ")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
