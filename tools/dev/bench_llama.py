#!/usr/bin/env python3
"""Times llama.cpp beside k31-run on the same cores: the same widths, layers, experts and number formats, made-up weights on its side.

    bench_llama.py MODEL_DIR --llama-bench FILE [--context 200] [--steps 64] [--prefill 512]

llama.cpp knows Kimi K3 (architecture `kimi-k3`), not the indexer of K3.1: its attention reads all positions. FILE is its program
`llama-bench`, built for this machine. MODEL_DIR needs config.json alone; where it has weights, k31 takes them, else it makes them up
too. The GGUF file is written to --work from a seed: bf16 matrices, MXFP4 experts, fp32 vectors. Needs NumPy.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCH = "kimi-k3"
F32, BF16, MXFP4 = 0, 30, 39  # tensor types of GGUF
U32, FLOAT, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5  # value types


def value(kind, v):
    if kind == STRING:
        return struct.pack("<Q", len(v)) + v.encode()
    if kind == ARRAY:
        return struct.pack("<IQ", I32, len(v)) + b"".join(struct.pack("<i", x) for x in v)
    return struct.pack({U32: "<I", FLOAT: "<f", BOOL: "<?"}[kind], v)


def metadata(c, layers):
    """Keys of the architecture from a config.json of the family."""
    linear = c["linear_attn_config"]
    latent, rope = c["kv_lora_rank"], c["qk_rope_head_dim"]
    full = set(linear["full_attn_layers"])
    own = [("vocab_size", U32, c["vocab_size"]), ("context_length", U32, 1 << 17), ("embedding_length", U32, c["hidden_size"]),
           ("block_count", U32, layers), ("feed_forward_length", U32, c["intermediate_size"]),
           ("attention.head_count", U32, c["num_attention_heads"]),
           ("attention.head_count_kv", ARRAY, [int(i + 1 in full) for i in range(layers)]),
           ("attention.layer_norm_rms_epsilon", FLOAT, c["rms_norm_eps"]), ("attention.q_lora_rank", U32, c["q_lora_rank"]),
           ("attention.kv_lora_rank", U32, latent), ("attention.key_length", U32, latent + rope), ("attention.value_length", U32, latent),
           ("attention.key_length_mla", U32, c["qk_nope_head_dim"] + rope), ("attention.value_length_mla", U32, c["v_head_dim"]),
           ("rope.dimension_count", U32, rope), ("ssm.conv_kernel", U32, linear["short_conv_kernel_size"]),
           ("kda.head_dim", U32, linear["head_dim"]), ("kda.gate_lower_bound", FLOAT, linear["gate_lower_bound"]),
           ("expert_count", U32, c["num_experts"]), ("expert_used_count", U32, c["num_experts_per_token"]),
           ("expert_feed_forward_length", U32, c["moe_intermediate_size"]), ("expert_shared_count", U32, c["num_shared_experts"]),
           ("leading_dense_block_count", U32, c["first_k_dense_replace"]), ("expert_weights_scale", FLOAT, c["routed_scaling_factor"]),
           ("expert_weights_norm", BOOL, c["moe_renormalize"]), ("expert_gating_func", U32, 2),  # 2: sigmoid
           ("expert_latent_length", U32, c["routed_expert_hidden_size"]), ("attn_res.block_size", U32, c["attn_res_block_size"]),
           ("activation.situ_beta", FLOAT, c["activation_situ_beta"]),
           ("activation.situ_linear_beta", FLOAT, c["activation_situ_linear_beta"])]
    return [("general.architecture", STRING, ARCH), ("general.name", STRING, "made-up weights"),
            ("tokenizer.ggml.model", STRING, "none")] + [(f"{ARCH}.{key}", kind, v) for key, kind, v in own]


def tensors(c, layers):
    """(name, sizes with the fastest first, type)."""
    h, heads, linear = c["hidden_size"], c["num_attention_heads"], c["linear_attn_config"]
    d, taps, inner = linear["head_dim"], linear["short_conv_kernel_size"], linear["head_dim"] * linear["num_heads"]
    nope, rope, v, rank, qrank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"], c["kv_lora_rank"], c["q_lora_rank"]
    z, f, experts = c["routed_expert_hidden_size"], c["moe_intermediate_size"], c["num_experts"]
    shared = f * c["num_shared_experts"]
    yield from [("token_embd.weight", [h, c["vocab_size"]], BF16), ("output_norm.weight", [h], F32),
                ("output.weight", [h, c["vocab_size"]], BF16), ("output_res_score.weight", [h], F32)]
    for i in range(layers):
        own = [(name, [h], F32) for name in ("attn_norm", "ffn_norm", "attn_res_score", "ffn_res_score")]
        if i + 1 in linear["full_attn_layers"]:
            own += [("attn_q_a_norm", [qrank], F32), ("attn_kv_a_norm", [rank], F32), ("attn_q_a", [h, qrank], BF16),
                    ("attn_q_b", [qrank, heads * (nope + rope)], BF16), ("attn_kv_a_mqa", [h, rank + rope], BF16),
                    ("attn_k_b", [nope, rank, heads], BF16), ("attn_v_b", [rank, v, heads], BF16),
                    ("attn_gate", [h, heads * v], BF16), ("attn_output", [heads * v, h], BF16)]
        else:
            own += [(f"ssm_conv1d_{x}", [taps, 1, inner, 1], F32) for x in "qkv"] + [(f"attn_{x}", [h, inner], BF16) for x in "qkv"]
            own += [("ssm_f_a", [h, d], BF16), ("ssm_f_b", [d, inner], BF16), ("ssm_beta", [h, linear["num_heads"]], BF16),
                    ("ssm_g", [h, inner], BF16), ("ssm_norm", [d], F32), ("attn_output", [inner, h], BF16)]
            yield f"blk.{i}.ssm_a", [linear["num_heads"]], F32
            yield f"blk.{i}.ssm_dt.bias", [inner], F32
        if i < c["first_k_dense_replace"]:
            own += [("ffn_gate", [h, c["intermediate_size"]], BF16), ("ffn_up", [h, c["intermediate_size"]], BF16),
                    ("ffn_down", [c["intermediate_size"], h], BF16)]
        else:
            own += [("ffn_gate_inp", [h, experts], F32), ("ffn_gate_exps", [z, f, experts], MXFP4), ("ffn_up_exps", [z, f, experts], MXFP4),
                    ("ffn_down_exps", [f, z, experts], MXFP4), ("ffn_routed_down", [h, z], BF16), ("ffn_routed_up", [z, h], BF16),
                    ("ffn_routed_norm", [z], F32), ("ffn_gate_shexp", [h, shared], BF16), ("ffn_up_shexp", [h, shared], BF16),
                    ("ffn_down_shexp", [shared, h], BF16)]
            yield f"blk.{i}.exp_probs_b.bias", [experts], F32
        for name, sizes, kind in own:
            yield f"blk.{i}.{name}.weight", sizes, kind


def block_of(kind, random, count=1 << 20):
    """Bytes of some values that files repeat: about normal with deviation 0.02; MXFP4 with scales of 2^-9 to 2^-3."""
    if kind == MXFP4:
        blocks = random.integers(0, 256, (count // 32, 17), dtype=numpy.uint8)
        blocks[:, 0] = random.integers(118, 125, count // 32)
        return blocks.tobytes()
    values = (random.standard_normal(count) * 0.02).astype(numpy.float32)
    return values.tobytes() if kind == F32 else (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()


def write_gguf(path, c, layers):
    random = numpy.random.default_rng(1)
    blocks = {kind: block_of(kind, random) for kind in (F32, BF16, MXFP4)}
    unit = {F32: (4, 1), BF16: (2, 1), MXFP4: (17, 32)}
    pad = lambda n: (n + 31) // 32 * 32
    keys, all_tensors = metadata(c, layers), list(tensors(c, layers))
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(all_tensors), len(keys))
    for key, kind, v in keys:
        header += value(STRING, key) + struct.pack("<I", kind) + value(kind, v)
    offset, sizes_of = 0, []
    for name, sizes, kind in all_tensors:
        header += value(STRING, name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        header += struct.pack("<IQ", kind, offset)
        count, (size, each) = int(numpy.prod(sizes)), unit[kind]
        sizes_of.append(count // each * size)
        offset += pad(sizes_of[-1])
    with open(path + ".part", "wb") as file:
        file.write(header.ljust(pad(len(header)), b"\0"))
        for (name, sizes, kind), left in zip(all_tensors, sizes_of):
            end = file.tell() + pad(left)
            if name.endswith(".ssm_a"):  # -exp(A_log), negative
                file.write(numpy.full(sizes, -1, numpy.float32).tobytes())
            else:
                for begin in range(0, left, len(blocks[kind])):
                    file.write(blocks[kind][:left - begin])
            file.write(b"\0" * (end - file.tell()))
    os.replace(path + ".part", path)
    return offset


def drop_from_cache(path):
    """Pages of a file that is not needed now leave no room for large pages of whoever runs."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def run(*command, stdout=subprocess.PIPE):
    done = subprocess.run([str(c) for c in command], stdout=stdout, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a checkpoint of the family")
    parser.add_argument("--llama-bench", required=True, help="the program")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="folder of our build")
    parser.add_argument("--work", default=os.path.join(ROOT, "build/bench-llama"), help="folder for the plan and the GGUF file")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--context", type=int, default=200, help="tokens before the ones that are decoded")
    parser.add_argument("--steps", type=int, default=64, help="tokens that are decoded")
    parser.add_argument("--prefill", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=["both", "k31", "llama.cpp"], default="both", help="one side only, where a run has little time")
    parser.add_argument("--only-write", action="store_true", help="make the plan and the GGUF file, time nothing")
    o = parser.parse_args()
    with open(os.path.join(o.model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    c = config.get("text_config", config)
    layers = c["num_hidden_layers"]
    os.makedirs(o.work, exist_ok=True)
    name = f"{os.path.basename(os.path.abspath(o.model))}-{layers}"
    gguf, plan = os.path.join(o.work, name + ".gguf"), os.path.join(o.work, name + ".k31")
    if not os.path.exists(gguf):
        print(f"{gguf}: {write_gguf(gguf, c, layers) / 1e9:.2f} GB of made-up weights")
    bench = os.path.join(o.build, "bin/k31-run")
    run(os.path.join(o.build, "bin/k31c"), "compile", o.model, "--target", "cpu", "--max-batch", 1, "--logit-rows", 1,
        "--max-context", o.context + o.prefill + o.steps + 64, "--prefill-chunk", o.prefill,
        "--cache-dir", os.path.join(o.work, "objects"), "-o", plan)
    if o.only_write:
        return
    weights = any(f.endswith(".safetensors") and os.stat(os.path.join(o.model, f)).st_blocks * 512 > 1 << 20 for f in os.listdir(o.model))
    source = ["--weights", o.model] if weights else ["--synthetic-weights"]
    rates = {"k31": {"decode": [], "prefill": []}, "llama.cpp": {"decode": [], "prefill": []}}
    for _ in range(o.rounds):  # in turns
        if o.side != "llama.cpp":
            drop_from_cache(gguf)
            decode, *_, prefill = json.loads(run(bench, "bench", "--plan", plan, *source, "--threads", o.threads, "--json", "--batch", 1,
                                                 "--context", o.context, "--steps", o.steps, "--prefill", o.prefill))["runs"]
            rates["k31"]["decode"].append(1e3 / decode["median_ms"])
            rates["k31"]["prefill"].append(prefill["tokens_per_s"])
        if o.side != "k31":
            run("cat", gguf, stdout=subprocess.DEVNULL)
            results = json.loads(run(o.llama_bench, "-m", gguf, "-t", o.threads, "-r", 1, "-o", "json", "-d", o.context, "-p", o.prefill,
                                     "-n", o.steps, "-ub", o.prefill))
            for result in results:
                rates["llama.cpp"]["decode" if result["n_gen"] else "prefill"].append(result["avg_ts"])
    print(f"{name}, {o.threads} threads, {o.rounds} rounds in turns, tokens/s")
    for kind, text in (("decode", f"one sequence behind {o.context} tokens"), ("prefill", f"{o.prefill} tokens behind {o.context}")):
        line = f"  {kind:8s}{text:36s}"
        for side, rate in rates.items():
            if rate[kind]:
                line += f" {side} {statistics.median(rate[kind]):9.2f} (best {max(rate[kind]):.2f})"
        if o.side == "both":
            line += f" ratio {statistics.median(rates['k31'][kind]) / statistics.median(rates['llama.cpp'][kind]):.2f}"
        print(line)


if __name__ == "__main__":
    main()
