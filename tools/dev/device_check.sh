#!/usr/bin/env bash
# Checks CUDA kernels and plans on a machine with a GPU and without our tools: everything it needs is made elsewhere and carried.
#
#   tools/dev/device_check.sh pack BUILD FILE            on the building machine: executables and plans into FILE
#   tools/dev/device_check.sh FILE [PART,...] [FILTER]   on the machine with the GPU
#
# Parts, the first three by default:
#   kernels   the kernel tests, those that FILTER names; keys planted in up to 1 M positions among them
#   tiny      models/tiny-k31 in fp32, bf16 and bf16 with caches of codes: logits, greedy text, agreement, perplexity
#   random    the random checkpoints, which are written there (needs numpy)
#   mesh      plans of two ranks over NCCL, on two GPUs: the comparisons of tiny, ranks that are killed, and
#             collectives beside raw NCCL (needs torch)
#   times     the kernels' times, and those of PyTorch for the same shapes in the same run (needs torch)
#   sanitize  compute-sanitizer, memcheck and racecheck, over small tests of every kernel
#
# FILE is a .tar.xz, since ICU's tables in k31-run are large and compress well.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
families="k31 k31-vl k3 k3-small-s1 kimi-linear"
make_checkpoint() { # NAME FOLDER: puts that golden model into FOLDER/NAME
  local options
  if [ "$1" = k3-small-s1 ]; then # another implementation's
    ln -sfn "$PWD/test/data/$1" "$2/$1"
    return
  fi
  options=$(python3 -c 'import json, sys; print(next(c["options"] for c in json.load(open("test/data/golden/cases.json")) if c["name"] == sys.argv[1]))' "$1")
  # shellcheck disable=SC2086 # options are words
  python3 test/e2e/random_checkpoint.py "$2/$1" $options
}

if [ "${1:-}" = pack ]; then
  build=$2 file=$3 folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  # What is carried is what the sources say now; the kernel tests where there is an nvcc.
  ninja -C "$build" k31c k31-opt k31-translate k31-run exchange_time >"$folder/log" || { tail -20 "$folder/log" && exit 1; }
  if ninja -C "$build" -t query k31_cuda_tests >/dev/null 2>&1; then
    ninja -C "$build" k31_cuda_tests >"$folder/log" || { tail -20 "$folder/log" && exit 1; }
  fi
  rm "$folder/log"
  cp "$build/bin/k31-run" "$folder/"
  tests=${K31_CUDA_TESTS:-$(find "$build" -name k31_cuda_tests -type f -executable | head -1)}
  [ -z "$tests" ] || cp "$tests" "$folder/"
  strip -s "$folder/k31-run"
  plan() { # NAME MODEL OPTIONS...
    "$build/bin/k31c" compile "$2" --max-context 1024 --max-batch 2 --prefill-chunk 512 --logit-rows 512 "${@:3}" -o "$folder/$1.k31" | tail -1
  }
  gpu=(--target sm_90a --cache-dir "$build/cuda-kernels")
  make_checkpoint k31-smooth "$folder" || exit 1
  for pair in tiny:models/tiny-k31 smooth:"$folder/k31-smooth"; do
    name=${pair%%:*} model=${pair#*:}
    plan "$name-bf16" "$model" "${gpu[@]}" --activations bf16 || exit 1
    plan "$name-fp32" "$model" "${gpu[@]}" --activations fp32 || exit 1
    plan "$name-fp8" "$model" "${gpu[@]}" --activations bf16 --kv-dtype fp8 || exit 1
    plan "host-$name" "$model" --target cpu --activations fp32 || exit 1
  done
  for case in $families; do
    make_checkpoint "$case" "$folder" && plan "random-$case-fp32" "$folder/$case" "${gpu[@]}" --activations fp32 &&
      plan "random-$case-tp2-fp32" "$folder/$case" "${gpu[@]}" --activations fp32 --mesh tp=2 || exit 1
  done
  plan smooth-tp2-fp32 "$folder/k31-smooth" "${gpu[@]}" --activations fp32 --mesh tp=2 || exit 1
  for case in k31-smooth $families; do rm -rf "${folder:?}/$case"; done
  for mesh in "tp2 --mesh tp=2" "tp2-rows --mesh tp=2 --sequence-parallel on --mla rows" "tp2-overlap --mesh tp=2 --overlap on" \
    "dp2 --mesh tp=1,ep=2" "dp2-dispatch --mesh tp=1,ep=2 --moe-exchange dispatch" \
    "dp2-dispatch-overlap --mesh tp=1,ep=2 --moe-exchange dispatch --overlap on" "tp2-dispatch --mesh tp=2 --moe-exchange dispatch" "pp2 --mesh pp=2" \
    "tp2-peer --mesh tp=2 --transport peer --fuse-sums off" "tp2-sums --mesh tp=2 --transport peer --fuse-sums on" \
    "tp2-sums-rows --mesh tp=2 --transport peer --fuse-sums on --sequence-parallel on" "tp2-peer-dispatch --mesh tp=2 --transport peer --moe-exchange dispatch --sequence-parallel on"; do
    read -r name options <<<"$mesh"
    # shellcheck disable=SC2086 # options are words
    plan "mesh-$name-fp32" models/tiny-k31 "${gpu[@]}" --activations fp32 $options || exit 1
  done
  plan mesh-tp2-peer-bf16 models/tiny-k31 "${gpu[@]}" --activations bf16 --mesh tp=2 --transport peer || exit 1
  cp "$build/bin/exchange_time" "$folder/" && strip -s "$folder/exchange_time"
  for transport in library peer; do
    python3 test/mesh/exchange_plan.py "$folder/exchange-$transport.k31" --bin "$build/bin" --target sm_90a --transport $transport || exit 1
  done
  for sums in on off; do
    python3 test/mesh/exchange_plan.py "$folder/sums-$sums.k31" --bin "$build/bin" --target sm_90a --transport peer --kinds mix,norm \
      --rows 1,16,64,128 --fuse-sums $sums || exit 1
  done
  plan mesh-tp2-bf16 models/tiny-k31 "${gpu[@]}" --activations bf16 --mesh tp=2 || exit 1
  tar -C "$folder" -cJf "$file" . && ls -l "$file"
  exit
fi

if [ ! -f "${1:-}" ]; then
  sed -n 's/^# \{0,1\}//; 2,16p' "$0" >&2
  exit 2
fi
folder=$(mktemp -d) parts=${2:-kernels,tiny,random} filter=${3:-}
trap 'rm -rf "$folder"' EXIT
tar -C "$folder" -xJf "$1" || exit 1
failed=0
wanted() { [[ ",$parts," == *",$1,"* ]]; }
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || exit 1
if wanted kernels && [ -x "$folder/k31_cuda_tests" ]; then
  timeout 300 "$folder/k31_cuda_tests" ${filter:+--filter "$filter"} >/tmp/cuda_tests.log 2>&1 || failed=1
  grep -iE 'fail|error|skip|planted' /tmp/cuda_tests.log | head -40
  tail -3 /tmp/cuda_tests.log
fi
if wanted tiny; then
  timeout 300 python3 tools/dev/device_check.py "$folder/k31-run" "$folder"/tiny-*.k31 --host "$folder/host-tiny.k31" 2>&1 || failed=1
  for plan in "$folder"/tiny-*.k31; do
    "$folder/k31-run" verify --plan "$plan" --weights models/tiny-k31 --writes || failed=1
  done
  "$folder/k31-run" generate --plan "$folder/tiny-bf16.k31" --weights models/tiny-k31 --prompt "In the beginning God created" \
    --max-tokens 200 --ignore-eos --verbose || failed=1
  "$folder/k31-run" bench --plan "$folder/tiny-bf16.k31" --weights models/tiny-k31 --batch 1 --context 512 --steps 100 --per-op >"$folder/bench" || failed=1
  head -24 "$folder/bench"
fi
if wanted mesh; then # what is short first
  for sums in on off; do # sums and the row op behind them in one launch, and in two
    timeout 100 "$folder/exchange_time" "$folder/sums-$sums.k31" 9 >"$folder/sums" || failed=1
    sed "s/^/--fuse-sums $sums: /" "$folder/sums"
  done
  timeout 200 python3 tools/dev/exchange_ratio.py "$folder/exchange_time" "$folder"/exchange-{library,peer}.k31 || failed=1
  for plan in mesh-tp2-bf16 mesh-tp2-peer-bf16; do
    timeout 200 python3 test/mesh/faults.py --plan "$folder/$plan.k31" --bin "$folder" --work "$folder/faults" || failed=1
  done
  "$folder/k31-run" verify --plan "$folder/mesh-tp2-dispatch-fp32.k31" --weights models/tiny-k31 --writes || failed=1
  make_checkpoint k31-smooth "$folder" &&
    timeout 100 python3 tools/dev/device_check.py "$folder/k31-run" "$folder/smooth-tp2-fp32.k31" --random "$folder/k31-smooth" 2>&1 || failed=1
  for case in $families; do
    make_checkpoint "$case" "$folder" &&
      timeout 100 python3 tools/dev/device_check.py "$folder/k31-run" "$folder/random-$case-tp2-fp32.k31" --random "$folder/$case" 2>&1 || failed=1
  done
  timeout 500 python3 tools/dev/device_check.py "$folder/k31-run" "$folder"/mesh-*.k31 2>&1 || failed=1
fi
if wanted random; then
  make_checkpoint k31-smooth "$folder" &&
    timeout 300 python3 tools/dev/device_check.py "$folder/k31-run" "$folder"/smooth-{bf16,fp32,fp8}.k31 --host "$folder/host-smooth.k31" --random "$folder/k31-smooth" 2>&1 || failed=1
  for case in $families; do
    make_checkpoint "$case" "$folder" &&
      timeout 100 python3 tools/dev/device_check.py "$folder/k31-run" "$folder/random-$case-fp32.k31" --random "$folder/$case" 2>&1 || failed=1
  done
fi
if wanted times; then
  timeout 500 python3 tools/dev/cublas_ratio.py "$folder/k31_cuda_tests" ${filter:+--filter "$filter"} || failed=1
fi
sanitize() { # TOOL TEST: one line with what it found, and all of it where that is not nothing
  local log=$folder/$1-$2.log
  timeout 200 compute-sanitizer --tool "$1" "$folder/k31_cuda_tests" --filter "$2" >"$log" 2>&1
  local code=$?
  echo "$1 $2: $(tail -1 "$log")"
  [ $code -eq 0 ] && grep -qE 'SUMMARY: 0 (errors|hazards)' "$log" && ! grep -q '^0 tests' "$log" || { head -30 "$log" && return 1; }
}
if wanted sanitize; then
  export folder
  export -f sanitize
  # In attn.kda.turns racecheck reports accesses on both sides of one __syncthreads; see docs/performance.md.
  for tool in memcheck racecheck; do
    for name in ${filter:-attn.append.scalars attn.append.codes attn.attend.codes attn.attend.parts attn.attend.products attn.batch_rows \
      attn.index_select.ties attn.index_select.kept attn.kda.tokens attn.kda.chunks attn.kda.segments attn.kda_decode.dims attn.kda_decode.turns \
      attn.short_conv.vectors coll.join coll.own_rows coll.pack coll.part coll.peer.two coll.sum_row.two coll.unpack math.regions \
      moe.combine moe.grouped_linear.thin moe.grouped_linear.widths moe.permute moe.route nn.embed nn.gather nn.head_linear.plain \
      nn.head_linear.fp32 nn.linear.thin nn.linear.mapped nn.linear.parts nn.linear.epilogue nn.map nn.row.norm nn.row.mix \
      nn.sample.top_p}; do
      echo "$tool" "$name"
    done
  done | xargs -P 8 -L 1 bash -c 'sanitize "$0" "$1"' || failed=1
fi
[ $failed -eq 0 ] && echo "device_check: passed" || echo "device_check: FAILED"
exit $failed
