#!/usr/bin/env python3
"""Writes a very small checkpoint (config.json and safetensors files full of holes) for import tests, whole or with one fault.

    checkpoint.py OUT [--family k31|k3|kimi-linear] [--shards N] [--vision] [--bf16-experts] [--flat]
                  [--set KEY=JSON] [--unset KEY] [--drop NAME] [--add NAME] [--rename OLD=NEW] [--shape NAME=[..]] [--dtype NAME=D]

KEY is a path in config.json ("text_config.hidden_size"). A NAME that ends in * stands for all names that begin so.
"""
import argparse
import json
import os

BYTES = {"BF16": 2, "F32": 4, "U8": 1, "F16": 2}
HIDDEN, VOCAB, LAYERS, FULL = 64, 96, 5, [2, 4]  # layers from 0
HEADS, HEAD = 2, 16                              # KDA; also heads of MLA, whose dimensions differ
NOPE, ROPE, VALUE, KV_RANK, Q_RANK = 16, 8, 24, 32, 48
EXPERTS, WIDTH, LATENT, SHARED, DENSE = 4, 32, 64, 2, 96
INDEX_HEADS, TOP = 4, 8


def config(family):
    linear = family == "kimi-linear"
    attention = {"full_attn_layers": [l + 1 for l in FULL], "kda_layers": [l + 1 for l in range(LAYERS) if l not in FULL],
                 "num_heads": HEADS, "head_dim": HEAD, "short_conv_kernel_size": 4}
    text = {"architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "dtype": "bfloat16", "vocab_size": VOCAB,
            "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "rms_norm_eps": 1e-5, "eos_token_id": 2,
            "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "q_lora_rank": None if linear else Q_RANK,
            "kv_lora_rank": KV_RANK, "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE, "v_head_dim": VALUE,
            "mla_use_nope": True, "linear_attn_config": attention, "intermediate_size": DENSE, "first_k_dense_replace": 1,
            "moe_layer_freq": 1, "num_experts": EXPERTS, "num_experts_per_token": 2, "num_shared_experts": SHARED,
            "moe_intermediate_size": WIDTH, "moe_renormalize": True, "moe_router_activation_func": "sigmoid",
            "num_expert_group": 1, "topk_group": 1, "use_grouped_topk": True, "num_nextn_predict_layers": 0,
            "tie_word_embeddings": False}
    if linear:
        return dict(text, hidden_act="silu", routed_scaling_factor=2.446, rope_theta=10000.0, rope_scaling=None)
    attention.update(gate_lower_bound=-5.0, use_full_rank_gate=True)
    weights = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32}
    text.update(hidden_act="situ", activation_situ_beta=4.0, activation_situ_linear_beta=25.0, attn_res_block_size=2,
                mla_use_output_gate=True, routed_expert_hidden_size=LATENT, latent_moe_use_norm=True, routed_scaling_factor=1.0,
                topk_method="noaux_tc",
                quantization_config={"format": "mxfp4-pack-quantized", "quant_method": "compressed-tensors",
                                     "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}})
    name, kind = ("KimiK31ForConditionalGeneration", "kimi_k31") if family == "k31" else ("KimiK3ForConditionalGeneration", "kimi_k3")
    if family == "k31":
        text["dsa_config"] = {"num_heads": INDEX_HEADS, "head_dim": 32, "top_k": TOP, "dsa_layers": [l + 1 for l in FULL]}
    return {"architectures": [name], "model_type": kind, "eos_token_id": [2, 3], "tie_word_embeddings": False, "text_config": text}


def tensors(family, packed):
    """{name: [dtype, shape]} of the text model."""
    linear, out = family == "kimi-linear", {}
    side = "BF16" if linear else "F32"
    prefix = "" if linear else "language_model."

    def put(name, *shape, dtype="BF16"):
        out[prefix + name] = [dtype, list(shape)]

    put("model.embed_tokens.weight", VOCAB, HIDDEN), put("lm_head.weight", VOCAB, HIDDEN), put("model.norm.weight", HIDDEN)
    if not linear:
        put("model.output_attn_res_norm.weight", HIDDEN), put("model.output_attn_res_proj.weight", 1, HIDDEN)
    for l in range(LAYERS):
        L = f"model.layers.{l}."
        put(L + "input_layernorm.weight", HIDDEN), put(L + "post_attention_layernorm.weight", HIDDEN)
        for n in () if linear else ("self_attention_res", "mlp_res"):
            put(L + n + "_norm.weight", HIDDEN), put(L + n + "_proj.weight", 1, HIDDEN)
        A, P = L + "self_attn.", HEADS * HEAD
        if l in FULL:
            if linear:
                put(A + "q_proj.weight", HEADS * (NOPE + ROPE), HIDDEN)
            else:
                put(A + "q_a_proj.weight", Q_RANK, HIDDEN), put(A + "q_a_layernorm.weight", Q_RANK)
                put(A + "q_b_proj.weight", HEADS * (NOPE + ROPE), Q_RANK), put(A + "g_proj.weight", HEADS * VALUE, HIDDEN)
            put(A + "kv_a_proj_with_mqa.weight", KV_RANK + ROPE, HIDDEN), put(A + "kv_a_layernorm.weight", KV_RANK)
            put(A + "kv_b_proj.weight", HEADS * (NOPE + VALUE), KV_RANK), put(A + "o_proj.weight", HIDDEN, HEADS * VALUE)
            if family == "k31":
                put(A + "indexer.wq_b.weight", INDEX_HEADS * 32, Q_RANK), put(A + "indexer.wk.weight", 32, HIDDEN)
                put(A + "indexer.weights_proj.weight", INDEX_HEADS, HIDDEN)
                put(A + "indexer.k_norm.weight", 32), put(A + "indexer.k_norm.bias", 32)
        else:
            for n in "qkv":
                put(A + n + "_proj.weight", P, HIDDEN), put(A + n + "_conv1d.weight", P, 1, 4, dtype=side)
            put(A + "f_a_proj.weight", HEAD, HIDDEN), put(A + "f_b_proj.weight", P, HEAD), put(A + "b_proj.weight", HEADS, HIDDEN)
            put(A + "A_log", *([1, 1, HEADS, 1] if linear else [8]), dtype="F32"), put(A + "dt_bias", P, dtype="F32")
            if linear:
                put(A + "g_a_proj.weight", HEAD, HIDDEN), put(A + "g_b_proj.weight", P, HEAD)
            else:
                put(A + "g_proj.weight", P, HIDDEN)
            put(A + "o_norm.weight", HEAD, dtype=side), put(A + "o_proj.weight", HIDDEN, P)
        if l == 0:
            put(L + "mlp.gate_proj.weight", DENSE, HIDDEN), put(L + "mlp.up_proj.weight", DENSE, HIDDEN)
            put(L + "mlp.down_proj.weight", HIDDEN, DENSE)
            continue
        M, Z, S = L + "block_sparse_moe.", HIDDEN if linear else LATENT, WIDTH * SHARED
        put(M + "gate.weight", EXPERTS, HIDDEN), put(M + "gate.e_score_correction_bias", EXPERTS, dtype=side)
        if not linear:
            put(M + "routed_expert_down_proj.weight", Z, HIDDEN), put(M + "routed_expert_up_proj.weight", HIDDEN, Z)
            put(M + "routed_expert_norm.weight", Z)
        put(M + "shared_experts.gate_proj.weight", S, HIDDEN), put(M + "shared_experts.up_proj.weight", S, HIDDEN)
        put(M + "shared_experts.down_proj.weight", HIDDEN, S)
        for e in range(EXPERTS):
            for n, rows, cols in (("w1", WIDTH, Z), ("w2", Z, WIDTH), ("w3", WIDTH, Z)):
                if packed:
                    put(f"{M}experts.{e}.{n}.weight_packed", rows, cols // 2, dtype="U8")
                    put(f"{M}experts.{e}.{n}.weight_scale", rows, cols // 32, dtype="U8")
                else:
                    put(f"{M}experts.{e}.{n}.weight", rows, cols)
    return out


def write_file(path, part):
    header, offset = {}, 0
    for name, (dtype, shape) in part.items():
        size = BYTES[dtype]
        for dim in shape:
            size *= dim
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        f.truncate(8 + len(text) + offset)  # the data is a hole: the import reads headers only


def write(out, table, shards):
    if shards == 1:
        return write_file(os.path.join(out, "model.safetensors"), table)
    names, where = list(table), {}
    for s in range(shards):
        file = f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
        part = names[len(names) * s // shards:len(names) * (s + 1) // shards]
        write_file(os.path.join(out, file), {n: table[n] for n in part})
        where.update({n: file for n in part})
    with open(os.path.join(out, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"metadata": {}, "weight_map": where}, f)


def named(table, name):
    found = [n for n in table if n.startswith(name[:-1])] if name.endswith("*") else [name]
    if not found or found[0] not in table:
        raise SystemExit(f"checkpoint.py: no tensor {name}")  # a misspelt fault must not pass as a test
    return found


def main():
    global WIDTH
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--family", choices=["k31", "k3", "kimi-linear"], default="k31")
    ap.add_argument("--shards", type=int, default=1)
    ap.add_argument("--vision", action="store_true")
    ap.add_argument("--bf16-experts", action="store_true")
    ap.add_argument("--flat", action="store_true")  # the text level alone
    ap.add_argument("--expert-width", type=int, default=WIDTH)
    for option in ("set", "unset", "drop", "add", "rename", "shape", "dtype"):
        ap.add_argument("--" + option, action="append", default=[])
    a = ap.parse_args()
    WIDTH = a.expert_width
    c, table = config(a.family), tensors(a.family, a.family != "kimi-linear" and not a.bf16_experts)
    for item in a.set + a.unset:
        path, _, value = item.partition("=")
        *parents, key = path.split(".")
        level = c
        for parent in parents:
            level = level[parent]
        if item in a.set:
            level[key] = json.loads(value)
        else:
            del level[key]
    if a.flat:
        c = c["text_config"]
        table = {n.removeprefix("language_model."): t for n, t in table.items()}
    if a.vision:
        table["vision_tower.encoder.final_layernorm.weight"] = table["mm_projector.post_norm.weight"] = ["BF16", [HIDDEN]]
    for name in a.drop:
        for n in named(table, name):
            del table[n]
    for name in a.add:
        table[name] = ["BF16", [4]]
    for old, new in (item.split("=") for item in a.rename):
        table[new] = table.pop(named(table, old)[0])
    for column, items in ((1, a.shape), (0, a.dtype)):
        for name, value in (item.split("=") for item in items):
            for n in named(table, name):
                table[n][column] = json.loads(value) if column else value
    os.makedirs(a.out, exist_ok=True)
    write(a.out, table, a.shards)
    with open(os.path.join(a.out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(c, f)


if __name__ == "__main__":
    main()
