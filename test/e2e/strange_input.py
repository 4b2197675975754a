#!/usr/bin/env python3
"""Input that no download makes, but a hostile or tired user: no files where files should be, options that mean nothing, sealed plans of
garbage, output that nobody takes. As bad_input.py: one line, the right exit code, nothing partial left behind, and no waiting.

    strange_input.py --work DIR
"""
import os
import resource
import shutil
import signal
import subprocess
import sys

import bad_input
from bad_input import ROOT, SMALL, call, refuse

MODEL = os.path.join(ROOT, "models/tiny-k31")


def copy(folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(MODEL, folder)
    return folder


# What may stand where a file should be. An open of the pipe that waits for a writer would wait for good.
KINDS = {"a pipe": os.mkfifo, "a folder": os.mkdir, "an endless device": lambda path: os.symlink("/dev/zero", path),
         "a link to itself": lambda path: os.symlink(path, path), "an empty file": lambda path: open(path, "w").close()}


def no_files(work, plan):
    bad, out = os.path.join(work, "bad"), os.path.join(work, "out.k31")
    compile_ = ["k31c", "compile", bad, *SMALL, "--no-cache", "-o", out]
    generate = ["k31-run", "generate", "--plan", plan, "--weights", bad, "--prompt", "x", "--max-tokens", "1"]
    for name, commands in (("config.json", [compile_, generate]), ("model.safetensors", [compile_, generate]),
                           ("model.safetensors.index.json", [compile_]), ("tiktoken.model", [generate])):
        for kind, make in KINDS.items():
            path = os.path.join(copy(bad), name)
            if os.path.exists(path):
                os.chmod(bad, 0o755), os.remove(path)
            elif kind == "a link to itself":
                continue  # an index that does not exist
            make(path)
            for command in commands:
                refuse(f"{command[0]}, {name} is {kind}", [name], *command, folder=work)
    strange = os.path.join(work, "strange")
    for kind, make in KINDS.items():
        make(strange)
        for command in (["k31-run", "generate", "--plan", strange, "--weights", MODEL, "--tokens", "1"], ["k31c", "inspect", strange],
                        ["k31-run", "generate", "--plan", plan, "--weights", MODEL, "--tokens-file", strange],
                        ["k31-run", "perplexity", "--plan", plan, "--weights", MODEL, "--text-file", strange]):
            empty_text = kind == "an empty file" and "--text-file" in command
            refuse(f"{command[1]}, a file is {kind}", ["token" if empty_text else "strange"], *command, folder=work)
        if os.path.isdir(strange):
            os.rmdir(strange)
        else:
            os.remove(strange)
    piped = subprocess.Popen(["cat", plan], stdout=subprocess.PIPE)
    refuse("a plan through a pipe", ["/dev/stdin", "is not a regular file"], "k31-run", "generate", "--plan", "/dev/stdin", "--weights", MODEL,
           "--tokens", "1", stdin=piped.stdout)
    piped.stdout.close()
    piped.wait()


def kernel_cache(work):
    """A cache that is a file is refused; one with pipes for objects makes them again."""
    cache, out = os.path.join(work, "cache"), os.path.join(work, "out.k31")
    command = ["k31c", "compile", MODEL, *SMALL, "--layers", "0:1", "--cache-dir", cache, "-o", out]
    with open(cache, "w") as f:
        f.write("a file")
    refuse("a cache that is a file", ["--cache-dir", "Not a directory", "give a folder"], *command, stdout=True, folder=work)
    os.remove(cache)
    call(*command)
    for name in os.listdir(cache):
        os.remove(os.path.join(cache, name)), os.mkfifo(os.path.join(cache, name))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
    shutil.rmtree(cache), os.remove(out)


def configs(work):
    bad, out = os.path.join(work, "bad"), os.path.join(work, "out.k31")
    compile_ = ["k31c", "compile", bad, *SMALL, "--no-cache", "-o", out]
    with open(os.path.join(MODEL, "config.json")) as f:
        good = f.read()
    for what, text, words in (("nests 200000 deep", '{"a":' * 200000 + "1" + "}" * 200000, "more than 64 deep"),
                              ("holds NaN", good.replace("{", '{"rms_norm_eps": NaN,', 1), "is not a JSON object"),
                              ("holds 1e999", good.replace("{", '{"rms_norm_eps": 1e999,', 1), "is not a JSON object"),
                              ("is UTF-16", good.encode("utf-16").decode("latin-1"), "is not a JSON object"),
                              ("is of zeros", "\0" * 100, "is not a JSON object"), ("is too long", good + " " * (17 << 20), "at most"),
                              ("has no experts", good.replace('"num_experts": 1', '"num_experts": 0, "x": 1'), "num_experts")):
        path = os.path.join(copy(bad), "config.json")
        os.chmod(path, 0o644)
        with open(path, "w", encoding="latin-1") as f:
            f.write(text)
        refuse(f"a config that {what}", ["config.json", words], *compile_, folder=work)
    shutil.rmtree(bad)


def options(work, plan):
    out = os.path.join(work, "out.k31")
    compile_ = ["k31c", "compile", MODEL, *SMALL, "--no-cache", "-o", out]
    for words, code, *given in ((["0:99", "9 layers"], 1, "--layers", "0:99"), (["5:2", "expected A:B"], 2, "--layers", "5:2"),
                                (["is empty"], 2, "--layers", ""), (["is empty"], 2, "--mesh", ""), (["no axis"], 1, "--mesh", ",,"),
                                (["given twice"], 1, "--mesh", "tp=2,tp=2"), (["2x", "expected an integer"], 1, "--mesh", "tp=2x"),
                                (["at most 9 pipeline stages"], 1, "--mesh", "pp=99"), (["tp=\\n2"], 1, "--mesh", "tp=\n2"),
                                (["nan", "from 0 to 1"], 2, "--mla-norm-eps", "nan"), (["-1", "from 0 to 1"], 2, "--mla-norm-eps=-1"),
                                (["--mla-norm-eps"], 2, "--mla-norm-eps", "x"), (["1e3"], 2, "--max-batch", "1e3"),
                                (["99999999999999999999"], 2, "--cache-tokens", "99999999999999999999"),
                                (["expected h100"], 2, "--memory-limit", "99999999999999999999G"), (["fp8"], 2, "--activations", "fp8"),
                                (["\\x1b[31m"], 2, "\x1b[31m"), (["Not a directory", "give a folder"], 1, "--dump-ir", plan)):
        refuse(f"compile {given}", words, *compile_, *given, code=code, folder=work)
    refuse("an empty output", ["--output", "is empty"], *compile_[:-1], "", code=2, folder=work)
    generate = ["k31-run", "generate", "--plan", plan, "--weights", MODEL, "--max-tokens", "2"]
    for words, code, *given in ((["no token id"], 2, "--tokens", ""), (["1.5"], 2, "--tokens", "1.5"), (["0x1"], 2, "--tokens", "0x1"),
                                (["'' is no token id"], 2, "--tokens", "1,,2"), (["'' is no token id"], 2, "--tokens", ",1"),
                                (["'' is no token id"], 2, "--tokens", "1,"), (["' 2' is no token id"], 2, "--tokens", "1, 2"),
                                (["' ' is no token id"], 2, "--tokens", " "), (["'1 2' is no token id"], 2, "--tokens", "1 2"),
                                (["99999999999999999999"], 2, "--tokens", "99999999999999999999"), (["empty"], 1, "--prompt", ""),
                                (["nan"], 1, "--tokens", "1", "--temperature", "nan"), (["2"], 2, "--tokens", "1", "--top-p", "2"),
                                (["100000"], 2, "--tokens", "1", "--threads", "100000"), (["--max-context", "256"], 1, "--prompt", "x" * 9999),
                                (["no\\nsuch"], 2, "--tokens", "1", "no\nsuch")):
        refuse(f"generate {[word[:40] for word in given]}", words, *generate, *given, code=code, folder=work)
    ids = os.path.join(work, "ids")
    for text, words in (("1,2\n3,,4\n", "line 2: '' is no token id"), ("1,\n", "line 1: ''"), ("1,2,", "line 1: ''"), ("\n1\n", "line 1: ''"),
                        ("1\n\n2\n", "line 2: ''"), ("1\n ", "line 2: ' '"), ("1\r\n2\r\n", "line 1: '1\\r'")):
        with open(ids, "w", newline="") as f:
            f.write(text)
        refuse(f"a file of ids {text!r}", ["ids", words], *generate, "--tokens-file", ids, folder=work)
    os.remove(ids)
    refuse("explain of no entry", ["no\\nsuch"], "k31c", "explain", plan, "--entry", "no\nsuch", stdout=True, folder=work)


def sealed(work, plan):
    """Plans with a right trailer around what no compiler writes."""
    bad = os.path.join(work, "bad.k31")
    for how, words in (("tables", "compile"), ("unaligned", "compile"), ("code", "they are no ELF object"),
                       ("cut", "they end after"), ("segments", "a segment of")):
        call(sys.executable, os.path.join(ROOT, "test/plan/damage.py"), plan, bad, how)
        refuse(f"a sealed plan, {how}", [words], "k31-run", "generate", "--plan", bad, "--weights", MODEL, "--tokens", "1", folder=work)
    os.remove(bad)


def lost_output(work, plan):
    """What was printed must have arrived."""
    if not os.path.exists("/dev/full"):
        return
    for command in (["k31-run", "generate", "--plan", plan, "--weights", MODEL, "--tokens", "1", "--max-tokens", "2"],
                    ["k31c", "inspect", plan], ["k31c", "explain", plan], ["k31c", "diff", plan, plan]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
        good = done.returncode == 1 and done.stderr.count("\n") == 1 and "standard output takes no more" in done.stderr
        bad_input.refused += 1
        print(f"{command[:2]}, output is full: {done.stderr.strip()}")
        if not good:
            bad_input.failures.append(f"{command[:2]} to a full device: exit code {done.returncode}, {done.stderr!r}")


def outputs(work, plan):
    """What cannot be written is refused before the work, not after it: before a plan or checkpoint is read."""
    folder, absent = os.path.join(work, "folder"), os.path.join(work, "absent")
    os.mkdir(folder)
    model = ["--plan", absent, "--weights", absent]
    for place, words in ((folder, "is no regular file"), (os.path.join(absent, "x"), "; "), ("/dev/full", "is no regular file")):
        for command in (["k31-run", "logits", *model, "--tokens", "1", "--out", place], ["k31-run", "bench", *model, "--trace", place],
                        ["k31c", "compile", absent, *SMALL, "-o", place]):
            refuse(f"{command[1]} to {place}", [f"cannot write '{place}'", words], *command, folder=work)
    refuse("logits to nowhere", ["cannot write ''"], "k31-run", "logits", *model, "--tokens", "1", "--out", "", folder=work)
    refuse("a trace to nowhere", ["cannot write ''"], "k31-run", "bench", *model, "--trace", "", folder=work)
    os.rmdir(folder)


def lost_streams(work, plan, mesh):
    """Started without standard streams: no file or socket takes their place, and no rank waits for another."""
    for what, of in (("one rank", plan), ("ranks", mesh)):
        def close():
            os.close(0), os.close(1)
        refuse(f"{what} without input and output", ["standard output takes no more"], "k31-run", "generate", "--plan", of, "--weights", MODEL,
               "--tokens", "1", "--max-tokens", "2", "--threads", "1", preexec_fn=close)


def tight_limits(work, plan):
    """Limits of the shell end nothing by a signal: files of a size, and the folder for temporary files on a full file system."""
    out, tmp = os.path.join(work, "out.k31"), os.path.join(work, "tmp")
    os.mkdir(tmp)
    compile_ = ["k31c", "compile", MODEL, *SMALL, "--cache-dir", os.path.join(os.path.dirname(work), "kernels"), "-o", out]
    environment = {**os.environ, "TMPDIR": tmp}
    for blocks, words in ((1, ["TMPDIR", "File too large"]), (300, ["cannot write", "File too large"])):
        def limit():  # as ulimit -f: Python itself ignores the signal, and gives that on
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 1024, blocks * 1024))
        refuse(f"files of {blocks} KiB", words, *compile_, stdout=True, folder=work, env=environment, preexec_fn=limit)
    if os.path.exists(out):
        os.remove(out)
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):
        if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", tmp], capture_output=True).returncode == 0:
            break
    else:
        print("full TMPDIR: no file system can be mounted here")
        return
    for size in range(16, 784, 64):  # objects that do not fit, then the image beside them
        script = os.path.join(work, "k31c")  # the name that stderr starts with
        with open(script, "w") as f:
            f.write(f"#!/bin/sh\nexec {' '.join(unshare)} sh -c 'mount -t tmpfs -o size={size}k none \"$0\" && exec \"$@\"' '{tmp}' " +
                    " ".join(f"'{word}'" for word in compile_) + "\n")
        os.chmod(script, 0o700)
        if subprocess.run([script], capture_output=True, env=environment).returncode == 0:
            assert size > 300, "the folder for temporary files was not used"
            os.remove(out)
        else:
            refuse(f"a TMPDIR of {size} KiB", ["No space left on device", "TMPDIR"], script, env=environment, folder=work)
        os.remove(script)


def main():
    work = bad_input.work_folder(__doc__)
    plan = os.path.join(work, "good.k31")
    call("k31c", "compile", MODEL, *SMALL, "--cache-dir", os.path.join(os.path.dirname(work), "kernels"), "-o", plan)
    no_files(work, plan)
    kernel_cache(work)
    configs(work)
    options(work, plan)
    sealed(work, plan)
    lost_output(work, plan)
    outputs(work, plan)
    mesh = os.path.join(work, "mesh.k31")
    call("k31c", "compile", MODEL, *SMALL, "--mesh", "tp=2", "--cache-dir", os.path.join(os.path.dirname(work), "kernels"), "-o", mesh)
    lost_streams(work, plan, mesh)
    tight_limits(work, plan)
    print(f"{bad_input.refused} refusals, {len(bad_input.failures)} wrong")
    if bad_input.failures or bad_input.refused < 95:
        sys.exit("\n".join(bad_input.failures))


if __name__ == "__main__":
    main()
