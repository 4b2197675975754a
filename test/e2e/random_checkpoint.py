#!/usr/bin/env python3
"""Seeded random checkpoints of the three families, in the released names, nesting and dtypes.

    random_checkpoint.py OUT --kind k31|k31-vl|k3|kimi-linear [--seed 1] [--layers 9] [--hidden 256] ...

The golden numbers in test/data/golden belong to the bytes that this program writes; NAME.json there lists their sha256. The
stream of numpy's RandomState is frozen, so the order of the draws below is part of the format: do not reorder them.
Needs numpy alone.
"""
import argparse
import json
import os

import numpy as np

HEAD = 128          # KDA head, MLA nope and value head, indexer head
ROPE, LATENT = 64, 512
SPECIALS = 256


# ---- number formats

def to_bf16(x):
    """float32 -> uint16 bits, round to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_mxfp4(w):
    """float32 [R, C] -> (codes [R, C/2] with the even column in the low nibble, E8M0 scales [R, C/32])."""
    rows, cols = w.shape
    block = w.reshape(rows, cols // 32, 32)
    top = np.maximum(np.abs(block).max(-1, keepdims=True), np.float32(2.0 ** -120))
    exponent = np.frexp(top)[1].astype(np.int32) - 3            # top = m 2^e, m in [1/2, 1): the largest value lands in [4, 8)
    x = block / np.exp2(exponent.astype(np.float32))
    midpoints = np.array([.25, .75, 1.25, 1.75, 2.5, 3.5, 5.0], np.float32)
    code = np.searchsorted(midpoints, np.abs(x), side="left").astype(np.uint8) | np.where(x < 0, 8, 0).astype(np.uint8)
    code = code.reshape(rows, cols)
    return code[:, 0::2] | (code[:, 1::2] << 4), (exponent[..., 0] + 127).astype(np.uint8)


# ---- safetensors

NAMES = {np.dtype(np.uint16): "BF16", np.dtype(np.float32): "F32", np.dtype(np.uint8): "U8"}


def write_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for t in tensors.values():
            f.write(t.tobytes())


def write_checkpoint(folder, config, tensors, shards):
    os.makedirs(folder, exist_ok=True)
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    else:
        names, where = list(tensors), {}
        for s in range(shards):
            file = f"model-{s + 1:05d}-of-{shards:05d}.safetensors"
            part = names[len(names) * s // shards:len(names) * (s + 1) // shards]
            where.update(dict.fromkeys(part, file))
            write_safetensors(os.path.join(folder, file), {n: tensors[n] for n in part})
        index = {"metadata": {"total_size": sum(t.nbytes for t in tensors.values())}, "weight_map": where}
        with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
            json.dump(index, f, indent=1)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


# ---- configurations

def mla_numbers(o):
    return {"num_attention_heads": o.heads, "num_key_value_heads": o.heads, "kv_lora_rank": LATENT, "qk_nope_head_dim": HEAD,
            "qk_rope_head_dim": ROPE, "v_head_dim": HEAD, "mla_use_nope": True}


def moe_numbers(o):
    return {"intermediate_size": o.dense, "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_experts": o.experts,
            "num_experts_per_token": o.top_k, "num_shared_experts": o.shared, "moe_intermediate_size": o.width,
            "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "use_grouped_topk": True, "num_expert_group": 1,
            "topk_group": 1, "num_nextn_predict_layers": 0, "tie_word_embeddings": False}


def config_of(o):
    """config.json of the options; K3 and K3.1 nest the text model, Kimi-Linear is flat."""
    vocab = o.vocab_base + SPECIALS
    ids = {"bos_token_id": o.vocab_base, "eos_token_id": o.vocab_base + 2, "pad_token_id": vocab - 1}
    full = [l + 1 for l in o.full]                                  # the file counts layers from 1
    linear = {"full_attn_layers": full, "kda_layers": [l + 1 for l in range(o.layers) if l not in o.full],
              "num_heads": o.kda_heads, "head_dim": HEAD, "short_conv_kernel_size": 4}
    text = {"architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "dtype": "bfloat16", "vocab_size": vocab,
            "hidden_size": o.hidden, "num_hidden_layers": o.layers, "rms_norm_eps": 1e-5, **ids, **mla_numbers(o),
            **moe_numbers(o), "linear_attn_config": linear}
    if o.kind == "kimi-linear":
        return {**text, "hidden_act": "silu", "q_lora_rank": None, "routed_scaling_factor": 2.446}
    linear.update(gate_lower_bound=-5.0, use_full_rank_gate=True)
    weights = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}
    text.update(attn_res_block_size=o.block, hidden_act="situ", activation_situ_beta=4.0, activation_situ_linear_beta=25.0,
                q_lora_rank=o.q_rank, mla_use_output_gate=True, routed_expert_hidden_size=o.latent, latent_moe_use_norm=True,
                topk_method="noaux_tc", routed_scaling_factor=1.0, max_position_embeddings=1048576,
                quantization_config={"format": "mxfp4-pack-quantized", "quant_method": "compressed-tensors",
                                     "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}})
    kind = ("KimiK3ForConditionalGeneration", "kimi_k3")
    if o.kind != "k3":
        kind = ("KimiK31ForConditionalGeneration", "kimi_k31")
        text["dsa_config"] = {"num_heads": o.dsa_heads, "head_dim": HEAD, "top_k": o.dsa_top, "dsa_layers": full}
    top = {"architectures": [kind[0]], "model_type": kind[1], "dtype": "bfloat16", **ids,
           "media_placeholder_token_id": o.vocab_base + 21, "tie_word_embeddings": False, "text_config": text}
    if o.kind == "k31-vl":
        top["vision_config"] = {"patch_size": 14, "vt_num_hidden_layers": o.vt_blocks, "vt_hidden_size": o.vt_width,
                                "vt_num_attention_heads": o.vt_heads, "qkv_hidden_size": o.vt_heads * HEAD,
                                "vt_intermediate_size": o.vt_mlp, "init_pos_emb_height": o.vt_grid, "init_pos_emb_width": o.vt_grid,
                                "merge_kernel_size": [2, 2], "text_hidden_size": o.hidden}
    return top


# ---- tensors, in the order of the draws

class Draw:
    """Draws tensors one after the other and keeps them by name."""

    def __init__(self, seed):
        self.rng, self.tensors, self.prefix = np.random.RandomState(seed), {}, ""

    def normal(self, *shape, std=1.0, mean=0.0):
        return (mean + std * self.rng.standard_normal(shape)).astype(np.float32)

    def put(self, name, values, f32=False):
        self.tensors[self.prefix + name] = values if f32 else to_bf16(values)

    def linear(self, name, rows, cols, gain=1.0):
        self.put(name + ".weight", self.normal(rows, cols, std=gain * cols ** -0.5))

    def norm(self, name, size, f32=False):
        self.put(name + ".weight", self.normal(size, std=0.2, mean=1.0), f32)

    def expert(self, name, rows, cols, packed):
        w = self.normal(rows, cols, std=cols ** -0.5)
        if not packed:
            return self.put(name + ".weight", w)
        codes, scales = to_mxfp4(w)
        self.tensors[self.prefix + name + ".weight_packed"] = codes
        self.tensors[self.prefix + name + ".weight_scale"] = scales


def draw_mla(d, o, a, k3):
    if k3:
        d.linear(a + "q_a_proj", o.q_rank, o.hidden)
        d.norm(a + "q_a_layernorm", o.q_rank)
        d.linear(a + "q_b_proj", o.heads * (HEAD + ROPE), o.q_rank, gain=2)
    else:
        d.linear(a + "q_proj", o.heads * (HEAD + ROPE), o.hidden, gain=2)
    d.linear(a + "kv_a_proj_with_mqa", LATENT + ROPE, o.hidden)
    d.norm(a + "kv_a_layernorm", LATENT)
    d.linear(a + "kv_b_proj", o.heads * 2 * HEAD, LATENT)
    d.linear(a + "o_proj", o.hidden, o.heads * HEAD, gain=2)
    if k3:
        d.linear(a + "g_proj", o.heads * HEAD, o.hidden)
    if o.kind.startswith("k31"):
        i = a + "indexer."
        d.linear(i + "wq_b", o.dsa_heads * HEAD, o.q_rank)
        d.linear(i + "wk", HEAD, o.hidden)
        d.norm(i + "k_norm", HEAD)
        d.put(i + "k_norm.bias", d.normal(HEAD, std=0.2))
        d.linear(i + "weights_proj", o.dsa_heads, o.hidden)


def draw_kda(d, o, a, k3):
    width = o.kda_heads * HEAD
    for n in "qkv":
        d.linear(a + n + "_proj", width, o.hidden)
        d.put(a + n + "_conv1d.weight", d.normal(width, 1, 4, std=0.5), k3)
    d.linear(a + "f_a_proj", HEAD, o.hidden)
    d.linear(a + "f_b_proj", width, HEAD)
    d.linear(a + "b_proj", o.kda_heads, o.hidden)
    d.linear(a + "o_proj", o.hidden, width, gain=2)
    rate = np.log(d.rng.uniform(1, 16, o.kda_heads)).astype(np.float32)
    if k3:                                  # bounded gate: the decays cover nearly all of (-5, 0); A_log is padded to 128
        d.linear(a + "g_proj", width, o.hidden)
        d.put(a + "A_log", np.concatenate([rate, np.zeros(max(0, 128 - o.kda_heads), np.float32)]), True)
        d.put(a + "dt_bias", d.rng.uniform(-1.5, 1.0, width).astype(np.float32), True)
    else:                                   # softplus gate: small steps
        d.linear(a + "g_a_proj", HEAD, o.hidden)
        d.linear(a + "g_b_proj", width, HEAD)
        d.put(a + "A_log", rate.reshape(1, 1, o.kda_heads, 1), True)
        d.put(a + "dt_bias", d.rng.uniform(-6, -2, width).astype(np.float32), True)
    d.norm(a + "o_norm", HEAD, k3)


def draw_moe(d, o, m, k3):
    latent, shared = (o.latent if k3 else o.hidden), o.width * o.shared
    d.linear(m + "gate", o.experts, o.hidden)
    d.put(m + "gate.e_score_correction_bias", d.normal(o.experts, std=0.05), k3)
    if k3:
        d.linear(m + "routed_expert_down_proj", latent, o.hidden)
        d.linear(m + "routed_expert_up_proj", o.hidden, latent)
        d.norm(m + "routed_expert_norm", latent)
    d.linear(m + "shared_experts.gate_proj", shared, o.hidden)
    d.linear(m + "shared_experts.up_proj", shared, o.hidden)
    d.linear(m + "shared_experts.down_proj", o.hidden, shared)
    for e in range(o.experts):
        d.expert(m + f"experts.{e}.w1", o.width, latent, k3)
        d.expert(m + f"experts.{e}.w2", latent, o.width, k3)
        d.expert(m + f"experts.{e}.w3", o.width, latent, k3)


def draw_text(d, o):
    k3 = o.kind != "kimi-linear"
    vocab = o.vocab_base + SPECIALS
    d.prefix = "language_model." if k3 else ""
    d.put("model.embed_tokens.weight", d.normal(vocab, o.hidden))
    d.linear("lm_head", vocab, o.hidden, gain=3)
    d.norm("model.norm", o.hidden)
    if k3:
        d.norm("model.output_attn_res_norm", o.hidden)
        d.put("model.output_attn_res_proj.weight", d.normal(1, o.hidden, std=0.1))
    for l in range(o.layers):
        p = f"model.layers.{l}."
        d.norm(p + "input_layernorm", o.hidden)
        d.norm(p + "post_attention_layernorm", o.hidden)
        for n in ("self_attention_res", "mlp_res") if k3 else ():
            d.norm(p + n + "_norm", o.hidden)
            d.put(p + n + "_proj.weight", d.normal(1, o.hidden, std=0.1))
        (draw_mla if l in o.full else draw_kda)(d, o, p + "self_attn.", k3)
        if l == 0:
            d.linear(p + "mlp.gate_proj", o.dense, o.hidden)
            d.linear(p + "mlp.up_proj", o.dense, o.hidden)
            d.linear(p + "mlp.down_proj", o.hidden, o.dense)
        else:
            draw_moe(d, o, p + "block_sparse_moe.", k3)


def draw_vision(d, o):
    d.prefix = ""
    width, qkv = o.vt_width, o.vt_heads * HEAD
    d.put("vision_tower.patch_embed.proj.weight", d.normal(width, 3, 14, 14, std=588 ** -0.5))
    d.put("vision_tower.patch_embed.pos_emb.weight", d.normal(o.vt_grid, o.vt_grid, width, std=0.3))
    for b in range(o.vt_blocks):
        p = f"vision_tower.encoder.blocks.{b}."
        d.norm(p + "norm0", width)
        d.norm(p + "norm1", width)
        d.linear(p + "wqkv", 3 * qkv, width)
        d.linear(p + "wo", width, qkv)
        d.linear(p + "mlp.fc0", o.vt_mlp, width)
        d.linear(p + "mlp.fc1", width, o.vt_mlp)
    d.norm("vision_tower.encoder.final_layernorm", width)
    d.linear("mm_projector.proj.0", 4 * width, 4 * width)
    d.linear("mm_projector.proj.2", o.hidden, 4 * width)
    d.norm("mm_projector.post_norm", o.hidden)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("--kind", choices=["k31", "k31-vl", "k3", "kimi-linear"], default="k31")
    ap.add_argument("--full", help="MLA layers counted from 0; default: every fourth and the last")
    for name, value in dict(seed=1, hidden=256, layers=9, vocab_base=256, block=4, kda_heads=4, heads=4, q_rank=96, experts=16,
                            top_k=4, latent=128, width=64, shared=2, dense=512, dsa_heads=8, dsa_top=64, shards=1, vt_blocks=3,
                            vt_width=192, vt_heads=2, vt_mlp=256, vt_grid=8).items():
        ap.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    o = ap.parse_args()
    o.full = [int(l) for l in o.full.split(",")] if o.full else sorted(set(range(3, o.layers, 4)) | {o.layers - 1})
    d = Draw(o.seed)
    draw_text(d, o)
    if o.kind == "k31-vl":
        draw_vision(d, o)
    write_checkpoint(o.out, config_of(o), d.tensors, o.shards)


if __name__ == "__main__":
    main()
