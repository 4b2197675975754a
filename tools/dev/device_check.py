#!/usr/bin/env python3
"""Runs plans of models/tiny-k31, or of a random checkpoint, and compares them with the golden numbers: ids of greedy text, and
logits of a prompt.

    device_check.py K31_RUN PLAN... [--host PLAN] [--random MODEL_DIR]

A plan's name says its activations and caches: fp32.k31, bf16.k31, fp8.k31 (bf16 with caches of codes). With a plan of fp32 for the
host, held-out text is scored by both and the plans of fp32 run operation by operation beside it. --random: the plans are of that
checkpoint, whose folder has the name of its golden numbers, and tokens to score are drawn. One line a comparison; exit 1 when a
limit is broken.
"""
import array
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "test/data/golden/tiny-k31")
MODEL = os.path.join(ROOT, "models/tiny-k31")
FP32_LIMIT = 2e-4  # of the largest difference of a logit
TEXT = os.path.join(ROOT, "test/data/golden/heldout.txt")
MARGIN = 0.3  # between the two largest logits of the host: below it the choice may differ


def read_tensor(path, name):
    """The values of one tensor in a row."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        info = json.loads(file.read(size))[name]
        begin, end = info["data_offsets"]
        file.seek(8 + size + begin)
        values = array.array({"F32": "f", "I32": "i", "I64": "q"}[info["dtype"]])
        values.frombytes(file.read(end - begin))
    return values


def difference(a, b):
    """Largest absolute difference and root mean square; NaN when a value is one."""
    differences = [abs(x - y) for x, y in zip(a, b, strict=True)]
    rms = math.sqrt(sum(d * d for d in differences) / len(differences))
    return (max(differences) if rms == rms else rms), rms


def use_random(folder):
    """From here on the model is that random checkpoint, whose logits lie apart: clear is a margin above 1."""
    global GOLDEN, MODEL, MARGIN, FP32_LIMIT, TEXT
    GOLDEN = os.path.join(os.path.dirname(GOLDEN), os.path.basename(os.path.normpath(folder)))
    MODEL, MARGIN, FP32_LIMIT, TEXT = folder, 1.0, 2e-3, None


def read_golden():
    """The golden numbers of the model: `greedy` texts, and the `tokens` and last `logits` of a prompt, None where there are none."""
    own = os.path.join(MODEL, "golden.json")  # another implementation's, beside its checkpoint
    if os.path.exists(own):
        golden = json.load(open(own, encoding="utf-8"))
        logits = array.array("f")
        with open(os.path.join(MODEL, "logits.f32"), "rb") as file:
            logits.frombytes(file.read())
        prompt = {"name": "prompt", "tokens": golden["prompt_ids"], "new": golden["new"], "margin": [1.0] * len(golden["new"])}
        return {"greedy": [prompt], "tokens": golden["prompt_ids"], "logits": logits}
    golden = json.load(open(GOLDEN + ".json", encoding="utf-8"))
    golden["greedy"] = [p for p in golden["greedy"] if "image" not in p["name"]]
    numbers = os.path.exists(GOLDEN + ".safetensors")
    golden["tokens"] = read_tensor(GOLDEN + ".safetensors", "tokens") if numbers else None
    golden["logits"] = read_tensor(GOLDEN + ".safetensors", "logits_last") if numbers else None
    return golden


def needed(prompt, bf16):
    """How many ids must be equal: up to the first choice that was close. For bf16 half a logit is far above its rounding."""
    limit = 0.5 if bf16 else FP32_LIMIT
    return next((i for i, m in enumerate(prompt["margin"]) if m < limit), len(prompt["new"]))


def run(program, command, plan, *options):
    """Standard output; None after printing the program's own error."""
    line = [program, command, "--plan", plan, "--weights", MODEL, *options]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"FAILED {command} {os.path.basename(plan)}: {done.stderr.strip()[-600:]}")
        return None
    return done.stdout


def check_logits(program, plan, golden, bf16):
    tokens, expected = golden["tokens"], golden["logits"]
    ok = True
    for chunk in ("0", "7"):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "logits.safetensors")
            if run(program, "logits", plan, "--tokens", ",".join(map(str, tokens)), "--chunk", chunk, "--out", out) is None:
                return False
            largest, rms = difference(read_tensor(out, "logits")[-len(expected):], expected)
        value, limit = (rms, 2 * golden["bf16_rms_difference"]) if bf16 else (largest, FP32_LIMIT)
        good = value <= limit  # false for NaN
        ok &= good
        print(f"{'ok    ' if good else 'FAILED'} logits chunk {chunk}: largest {largest:.3g}, rms {rms:.3g}, "
              f"limit {limit:.3g} of the {'rms' if bf16 else 'largest'}")
    return ok


def check_greedy(program, plan, golden, bf16):
    ok, drawn, seconds = True, 0, 0.0
    for prompt in golden["greedy"]:
        new = prompt["new"]
        out = run(program, "generate", plan, "--tokens", ",".join(map(str, prompt["tokens"])), "--max-tokens", str(len(new)),
                  "--ignore-eos", "--json")
        if out is None:
            return False
        report = json.loads(out)
        ids = report["sequences"][0]["tokens"]
        same = next((i for i, (a, b) in enumerate(zip(ids, new)) if a != b), min(len(ids), len(new)))
        least = needed(prompt, bf16)
        ok &= same >= least
        drawn, seconds = drawn + len(ids), seconds + report.get("seconds", 0.0)
        print(f"{'ok    ' if same >= least else 'FAILED'} greedy {prompt['name']}: {same} of {len(new)} ids equal, {least} needed")
    if seconds:
        print(f"       {drawn} tokens in {seconds:.3f} s, prompts included")
    return ok


def check_batch(program, plan, golden, copies=6):
    """All prompts of the golden numbers at once, several times over: more sequences than the plan runs at a time."""
    prompts = golden["greedy"] * copies
    new = min(len(prompt["new"]) for prompt in prompts)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write("\n".join(",".join(map(str, prompt["tokens"])) for prompt in prompts) + "\n")
        file.flush()
        out = run(program, "generate", plan, "--tokens-file", file.name, "--max-tokens", str(new), "--ignore-eos", "--json")
    if out is None:
        return False
    same = sum(s["tokens"][:least] == prompt["new"][:least]
               for s, prompt in zip(json.loads(out)["sequences"], prompts, strict=True) for least in [min(new, needed(prompt, False))])
    print(f"{'ok    ' if same == len(prompts) else 'FAILED'} batch: {same} of {len(prompts)} sequences equal")
    return same == len(prompts)


def scores(program, plan, rows):
    """Ids of the largest logit and margins to the next one at the first positions of the text, and its perplexity."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.safetensors")
        if run(program, "logits", plan, "--text-file", TEXT, "--window", "512", "--out", out) is None:
            return None
        logits = read_tensor(out, "logits")
    text = run(program, "perplexity", plan, "--text-file", TEXT, "--window", "512", "--json")
    if text is None:
        return None
    vocab = json.load(open(os.path.join(MODEL, "config.json"), encoding="utf-8"))["text_config"]["vocab_size"]
    best = []
    for row in range(min(rows, len(logits) // vocab)):
        values = logits[row * vocab:(row + 1) * vocab]
        top, second = sorted(values)[:-3:-1]
        best.append((values.index(top), top - second))
    return best, json.loads(text)["perplexity"]


def drawn_scores(program, plan, count=1000):
    """The same for ids of a fixed generator, without perplexity."""
    vocab = json.load(open(os.path.join(MODEL, "config.json"), encoding="utf-8"))["text_config"]["vocab_size"]
    ids, state = [], 1
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        ids.append(state // 2**33 % (vocab - 256))
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.safetensors")
        if run(program, "logits", plan, "--tokens", ",".join(map(str, ids)), "--out", out) is None:
            return None
        logits = read_tensor(out, "logits")
    best = []
    for row in range(len(logits) // vocab):
        values = logits[row * vocab:(row + 1) * vocab]
        top, second = sorted(values)[:-3:-1]
        best.append((values.index(top), top - second))
    return best, 1.0


def check_agreement(program, plan, host, rows=2048, most=0.003):
    mine, theirs = (scores(program, p, rows) if TEXT else drawn_scores(program, p) for p in (plan, host))
    if mine is None or theirs is None:
        return False
    clear = [(a[0] == b[0]) for a, b in zip(mine[0], theirs[0], strict=True) if b[1] > MARGIN]
    share, change = sum(clear) / len(clear), abs(mine[1] / theirs[1] - 1)
    good = share >= 0.99 and change <= most
    text = f"; perplexity {mine[1]:.4f}, host {theirs[1]:.4f}, {100 * change:.3f} % apart ({100 * most:g} allowed)" if TEXT else ""
    print(f"{'ok    ' if good else 'FAILED'} {'held-out text' if TEXT else 'drawn ids'}: of {len(theirs[0])} positions {len(clear)} have a "
          f"margin above {MARGIN}, {100 * share:.2f} % agree (99 wanted){text}")
    return good


def check_operations(program, plan, host):
    out = run(program, "verify", plan, "--reference", host, "--bound", "1e-3")
    if out is None:
        return False
    print("ok     " + out.strip().replace("\n", "\n       "))
    return True


def main(program, arguments):
    options = dict(zip(arguments, arguments[1:]))
    host, random = options.get("--host"), options.get("--random")
    plans = [a for a in arguments if a not in ("--host", "--random", host, random)]
    if random:
        use_random(random)
    golden = read_golden()
    ok = True
    for plan in plans:
        name = os.path.basename(plan)
        fp8 = "fp8" in name
        bf16 = fp8 or "bf16" in name
        print(f"plan {name}")
        good = golden["logits"] is None or check_logits(program, plan, golden, bf16)
        good = check_greedy(program, plan, golden, bf16) and good
        good = (bf16 or check_batch(program, plan, golden)) and good
        if host and bf16:
            good = check_agreement(program, plan, host, most=0.01 if fp8 else 0.003) and good
        elif host:
            good = check_operations(program, plan, host) and good
        if not good:  # which launch is it?
            run(program, "generate", plan, "--tokens", "1114,259,1983", "--max-tokens", "2", "--check-launches")
        ok &= good
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
