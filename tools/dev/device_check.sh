#!/usr/bin/env bash
# Checks CUDA kernels and plans on a machine with a GPU and without our tools: everything it needs is made elsewhere and carried.
#
#   tools/dev/device_check.sh pack BUILD FILE   on the building machine: executables and plans of models/tiny-k31 into FILE
#   tools/dev/device_check.sh FILE [FILTER]     on the machine with the GPU: kernel tests, logits, greedy text, timings
#
# FILE is a .tar.xz, since ICU's tables in k31-run are large and compress well.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [ "${1:-}" = pack ]; then
  build=$2 file=$3 folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cp "$build/bin/k31-run" "$folder/"
  tests=${K31_CUDA_TESTS:-$(find "$build" -name k31_cuda_tests -type f -executable | head -1)}
  [ -z "$tests" ] || cp "$tests" "$folder/"
  strip -s "$folder/k31-run"
  for activations in bf16 fp32; do
    "$build/bin/k31c" compile models/tiny-k31 --target sm_90a --activations $activations --max-context 1024 --max-batch 2 \
      --prefill-chunk 512 --logit-rows 512 --cache-dir "$build/cuda-kernels" -o "$folder/tiny-$activations.k31" | tail -1 || exit 1
  done
  "$build/bin/k31c" compile models/tiny-k31 --target cpu --activations fp32 --max-context 1024 --max-batch 2 --prefill-chunk 512 \
    --logit-rows 512 -o "$folder/host-fp32.k31" | tail -1 || exit 1
  tar -C "$folder" -cJf "$file" . && ls -l "$file"
  exit
fi

folder=$(mktemp -d) filter=${2:-}
trap 'rm -rf "$folder"' EXIT
tar -C "$folder" -xJf "${1:?the file that pack made}" || exit 1
failed=0
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
if [ -x "$folder/k31_cuda_tests" ]; then
  timeout 240 "$folder/k31_cuda_tests" ${filter:+--filter "$filter"} >/tmp/cuda_tests.log 2>&1 || failed=1
  grep -iE 'fail|error|skip' /tmp/cuda_tests.log | head -40
  tail -3 /tmp/cuda_tests.log
fi
timeout 300 python3 tools/dev/device_check.py "$folder/k31-run" "$folder"/tiny-*.k31 --host "$folder/host-fp32.k31" 2>&1 || failed=1
"$folder/k31-run" generate --plan "$folder/tiny-bf16.k31" --weights models/tiny-k31 --prompt "In the beginning God created" \
  --max-tokens 200 --ignore-eos --verbose || failed=1
"$folder/k31-run" bench --plan "$folder/tiny-bf16.k31" --weights models/tiny-k31 --batch 1 --context 512 --steps 100 --per-op >"$folder/bench" || failed=1
head -24 "$folder/bench"
[ $failed -eq 0 ] && echo "device_check: passed" || echo "device_check: FAILED"
exit $failed
