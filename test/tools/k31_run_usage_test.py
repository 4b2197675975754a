"""Exit codes and messages of k31-run without a plan: 0 help, 1 refused with one line, 2 wrong usage."""
import os
import subprocess
import sys
import tempfile

tool, root = sys.argv[1:]
tiny = os.path.join(root, "models/tiny-k31")
broken = tempfile.NamedTemporaryFile(suffix=".k31")
broken.write(b"K31P" * 100)
broken.flush()
model = ["--plan", broken.name, "--weights", tiny]

CASES = [
    (0, "Usage:", ["--help"]),
    (0, "k31-run ", ["--version"]),
    (0, "Example:", ["generate", "--help"]),
    (0, "--effort low|high|max", ["generate", "--help"]),
    (0, "--batch N=1 ", ["bench", "--help"]),
    (0, "Example:", ["logits", "--help"]),
    (0, "Example:", ["perplexity", "--help"]),
    (2, "subcommand", []),
    (2, "no command 'serve'; k31-run --help", ["serve", "--port"]),
    (2, "no option '--port'", ["--port"]),
    (2, "--steps: Value 0 not in range 1 to 1048576; k31-run bench --help", ["bench", "--steps", "0"]),
    (2, "a\\n\\x1b[31m", ["generate", *model, "--prompt", "x", "a\n\x1b[31m"]),
    (2, "'' is no token id", ["generate", *model, "--tokens", ""]),
    (2, "1\\n2", ["generate", *model, "--prompt", "x", "--temperature", "1\n2"]),
    (2, "--weights", ["generate", "--plan", "x"]),
    (2, "--temperature", ["generate", *model, "--prompt", "x", "--temperature", "-1"]),
    (2, "--top-p", ["generate", *model, "--prompt", "x", "--top-p", "0"]),
    (2, "--max-tokens", ["generate", *model, "--prompt", "x", "--max-tokens", "0"]),
    (2, "--chat", ["generate", *model, "--prompt", "x", "--effort", "low"]),
    (2, "--effort", ["generate", *model, "--prompt", "x", "--chat", "--effort", "medium"]),
    (2, "--tokens", ["generate", *model]),
    (2, "--tokens", ["generate", *model, "--prompt", "x", "--tokens", "1"]),
    (2, "--chat", ["generate", *model, "--tokens", "1", "--chat"]),
    (2, "--tokens", ["logits", *model, "--out", "o"]),
    (2, "--tokens", ["logits", *model, "--out", "o", "--tokens", "1", "--text-file", "f"]),
    (2, "--tokens: 'x' is no token id", ["logits", *model, "--out", "o", "--tokens", "1,x"]),
    (2, "'' is no token id", ["logits", *model, "--out", "o", "--tokens", "1,,2"]),
    (2, "'' is no token id", ["verify", *model, "--reference", "r", "--tokens", "1,"]),
    (2, "--window", ["perplexity", *model, "--text-file", "f", "--window", "0"]),
    (2, "found 18446744073709551616", ["generate", *model, "--tokens", "1", "--seed", "18446744073709551616"]),
    (2, "found -1", ["generate", *model, "--tokens", "1", "--seed", "-1"]),
    (2, "found -1", ["bench", *model, "--seed=-1"]),
    (2, "found nan", ["verify", *model, "--reference", "r", "--bound", "nan"]),
    (2, "found inf", ["verify", *model, "--reference", "r", "--bound", "inf"]),
    (2, "found -1", ["verify", *model, "--reference", "r", "--bound=-1"]),
    (1, "/nonexistent.k31", ["generate", "--plan", "/nonexistent.k31", "--weights", tiny, "--prompt", "x"]),
    (1, broken.name, ["generate", *model, "--prompt", "x"]),
    (1, broken.name, ["logits", *model, "--tokens", "1,2", "--out", "o"]),
    (1, broken.name, ["perplexity", *model, "--text-file", "f"]),
]

failed = 0
for code, part, arguments in CASES:
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    said = done.stdout if code == 0 else done.stderr
    good = done.returncode == code and part in said and (code == 0 or not done.stdout)
    if code != 0:
        good = good and said.startswith("k31-run: error: ") and said.count("\n") == 1
    if not good:
        failed += 1
        print(f"{arguments}: exit {done.returncode}, expected {code} and {part!r} in:\n{done.stdout}{done.stderr}")
print(f"{len(CASES) - failed} of {len(CASES)} as expected")
sys.exit(failed > 0)
