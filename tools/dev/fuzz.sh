#!/usr/bin/env bash
# Feeds made-up bytes to one reader of untrusted files, under the address and undefined-behaviour sanitizers. Inputs that reach new
# code are kept in build/fuzz/corpus/TARGET; what makes a reader fail is written to build/fuzz/failed-TARGET-*. Mend it, and add the
# input to test/data/fuzz/TARGET, which the test suite replays.
#   tools/dev/fuzz.sh TARGET SECONDS      TARGET: plan, safetensors, index, vocabulary, encode or config
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ $# -ne 2 ] || [ ! -d "test/data/fuzz/$1" ] || ! [[ $2 =~ ^[1-9][0-9]*$ ]]; then
  sed -n 's/^# \{0,1\}//; 2,6p' "$0" >&2
  exit 2
fi
target=$1 seconds=$2 build=${K31_FUZZ_BUILD:-build/fuzz}
[ -f "$build/build.ninja" ] || cmake --preset fuzz -B "$build" >/dev/null
ninja -C "$build" "fuzz_$target" >"$build/build.log" || { cat "$build/build.log" >&2; exit 1; }
mkdir -p "$build/corpus/$target"
exec "$build/bin/fuzz_$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
  -artifact_prefix="$build/failed-$target-" "$build/corpus/$target" "test/data/fuzz/$target"
