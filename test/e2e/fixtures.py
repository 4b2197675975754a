#!/usr/bin/env python3
"""Layers of another implementation of K3 (test/data/third-party/ops), through k31c and the runtime.

    fixtures.py --work DIR [--bin DIR]

Each fixture becomes a checkpoint of fp32 weights. A plan of one layer (--layers) takes the fixture's hidden states and residual bank.
Single parts of a layer are made from whole ones: the layer starts a block, so its output is attention + feed-forward without the
running sum; one of the two is made zero, and the gain of the norm before the other undoes the norm.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

from random_checkpoint import write_safetensors
from safetensors_io import read_safetensors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ABSOLUTE, RELATIVE = 1e-5, 1e-4  # the fixtures' own tolerance

HIDDEN, LAYERS, BLOCK, FULL = 128, 8, 3, 6  # layer 6 is the only MLA layer
# One layer each: (first layer, sources in the bank). Layers 3 and 6 start a block.
START, MIDDLE, MLA = 3, 4, 6

CONFIG = {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "text_config": {
    "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "dtype": "float32", "vocab_size": 256,
    "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "rms_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 64, "kv_lora_rank": 32, "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "mla_use_nope": True, "mla_use_output_gate": True, "intermediate_size": 96,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_experts": 8, "num_experts_per_token": 2, "num_shared_experts": 2,
    "moe_intermediate_size": 48, "moe_renormalize": True, "moe_router_activation_func": "sigmoid", "use_grouped_topk": True,
    "num_expert_group": 1, "topk_group": 1, "num_nextn_predict_layers": 0, "tie_word_embeddings": False,
    "routed_expert_hidden_size": 64, "latent_moe_use_norm": True, "topk_method": "noaux_tc", "routed_scaling_factor": 1.0,
    "attn_res_block_size": BLOCK, "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
    "max_position_embeddings": 4096,
    "linear_attn_config": {"full_attn_layers": [FULL + 1], "kda_layers": [l + 1 for l in range(LAYERS) if l != FULL],  # from 1
                           "num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
                           "use_full_rank_gate": True}}}

MOE = {"gate_weight": "gate.weight", "e_score_correction_bias": "gate.e_score_correction_bias",
       "down_weight": "routed_expert_down_proj.weight", "up_weight": "routed_expert_up_proj.weight",
       "norm_weight": "routed_expert_norm.weight", "shared_w1_weight": "shared_experts.gate_proj.weight",
       "shared_w3_weight": "shared_experts.up_proj.weight", "shared_w2_weight": "shared_experts.down_proj.weight",
       **{f"experts_{e}_{w}_weight": f"experts.{e}.{w}.weight" for e in range(8) for w in ("w1", "w2", "w3")}}
KDA = {**{f"{n}_proj": f"{n}_proj.weight" for n in "qkvgob"}, **{f"{n}_conv": f"{n}_conv1d.weight" for n in "qkv"},
       "f_a": "f_a_proj.weight", "f_b": "f_b_proj.weight", "A_log": "A_log", "dt_bias": "dt_bias", "o_norm": "o_norm.weight"}


def fixture(name):
    """Arrays of a fixture by name."""
    with open(os.path.join(ROOT, "test/data/third-party/ops", name + ".json")) as f:
        values = json.load(f)
    return {k: np.array(v["data"], np.float32).reshape(v["shape"]) for k, v in values.items() if isinstance(v, dict)}


def shapes(layer):
    """{name in the layer: shape} of everything that the layer must have."""
    H, out = HIDDEN, {n + ".weight": (HIDDEN,) for n in ("input_layernorm", "post_attention_layernorm")}
    for n in "self_attention_res", "mlp_res":
        out.update({n + "_norm.weight": (H,), n + "_proj.weight": (1, H)})
    if layer == FULL:
        own = {"q_a_proj": (64, H), "q_a_layernorm": (64,), "q_b_proj": (128, 64), "kv_a_proj_with_mqa": (40, H), "kv_a_layernorm": (32,),
               "kv_b_proj": (160, 32), "g_proj": (64, H), "o_proj": (H, 64)}
    else:
        own = {**{n + "_proj": (64, H) for n in "qkvg"}, **{n + "_conv1d": (64, 1, 4) for n in "qkv"}, "f_a_proj": (16, H),
               "f_b_proj": (64, 16), "b_proj": (4, H), "o_norm": (16,), "o_proj": (H, 64)}
        out.update({"self_attn.A_log": (4,), "self_attn.dt_bias": (64,)})
    out.update({f"self_attn.{n}.weight": s for n, s in own.items()})
    if layer == 0:
        return {**out, "mlp.gate_proj.weight": (96, H), "mlp.up_proj.weight": (96, H), "mlp.down_proj.weight": (H, 96)}
    moe = {"gate.weight": (8, H), "gate.e_score_correction_bias": (8,), "routed_expert_down_proj.weight": (64, H),
           "routed_expert_up_proj.weight": (H, 64), "routed_expert_norm.weight": (64,), "shared_experts.gate_proj.weight": (96, H),
           "shared_experts.up_proj.weight": (96, H), "shared_experts.down_proj.weight": (H, 96)}
    for e in range(8):
        moe.update({f"experts.{e}.w1.weight": (48, 64), f"experts.{e}.w2.weight": (64, 48), f"experts.{e}.w3.weight": (48, 64)})
    return {**out, **{"block_sparse_moe." + n: s for n, s in moe.items()}}


class Slice:
    """One layer, compiled once; each run brings the layer's weights (zero where none are given) and hidden states."""

    def __init__(self, options, layer):
        self.layer, self.options = layer, options
        self.folder = os.path.join(options.work, f"layer-{layer}")
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "config.json"), "w") as f:
            json.dump(CONFIG, f)
        self.write({})
        self.plan = self.folder + ".k31"
        self.call("k31c", "compile", self.folder, "--target", "cpu", "--activations", "fp32", "--layers", f"{layer}:{layer + 1}",
                  "--mla-norm-eps", "1e-5", "--max-context", "256", "--max-batch", "1", "--prefill-chunk", "8", "--cpu-level", "x86-64-v3",
                  "--cache-dir", os.path.join(os.path.dirname(os.path.abspath(options.work)), "kernels"), "-o", self.plan)

    def call(self, tool, *arguments):
        subprocess.run([os.path.join(self.options.bin, tool), *arguments], check=True, stdout=subprocess.DEVNULL)

    def write(self, weights):
        tensors = {"language_model.model.embed_tokens.weight": np.zeros((256, HIDDEN), np.float32),
                   "language_model.lm_head.weight": np.zeros((256, HIDDEN), np.float32)}
        for name, shape in {"norm": (HIDDEN,), "output_attn_res_norm": (HIDDEN,), "output_attn_res_proj": (1, HIDDEN)}.items():
            tensors[f"language_model.model.{name}.weight"] = np.zeros(shape, np.float32)
        unknown = set(weights) - set(shapes(self.layer))
        if unknown:
            sys.exit(f"layer {self.layer} has no {sorted(unknown)}")
        for layer in range(LAYERS):
            for name, shape in shapes(layer).items():
                given = weights.get(name) if layer == self.layer else None
                tensors[f"language_model.model.layers.{layer}.{name}"] = np.zeros(shape, np.float32) if given is None else given.reshape(shape)
        write_safetensors(os.path.join(self.folder, "model.safetensors"), tensors)

    def run(self, weights, hidden, bank):
        """hidden [T, H], bank [sources, T, H] -> outputs by name."""
        self.write(weights)
        inputs, out = os.path.join(self.folder, "inputs.safetensors"), os.path.join(self.folder, "outputs.safetensors")
        write_safetensors(inputs, {"hidden": np.ascontiguousarray(hidden), "bank": np.ascontiguousarray(bank)})
        self.call("k31-e2e", "slice", "--plan", self.plan, "--weights", self.folder, "--inputs", inputs, "--out", out)
        return read_safetensors(out)


def close(what, found, expected):
    found = found.reshape(expected.shape)
    error = np.abs(found - expected)
    ok = bool((error <= ABSOLUTE + RELATIVE * np.abs(expected)).all())  # false for NaN
    print(f"{what}: max difference {error.max():.3g} of {np.abs(expected).max():.3g}{'' if ok else '  FAILED'}")
    return ok


def whole_layer(options, name, layer):
    f = fixture(name)
    weights = {}
    for key, value in f.items():
        if key.startswith("mlp_") and key[4:] in MOE:
            weights["block_sparse_moe." + MOE[key[4:]]] = value
        elif key.startswith("self_attn_"):
            weights["self_attn." + key[10:].replace("_weight", ".weight")] = value
        elif key.endswith("_weight"):
            weights[key.replace("_weight", ".weight")] = value
    sources = f["block_residual_in"].transpose(1, 0, 2)
    got = Slice(options, layer).run(weights, f["in"][0], sources)
    ok = close(f"{name}: hidden", got["hidden"], f["out"][0])
    return close(f"{name}: bank", got["bank"], f["block_residual_out"].transpose(1, 0, 2)) and ok


def rms(x):
    return np.full(HIDDEN, np.sqrt(np.mean(np.square(x, dtype=np.float64)) + 1e-5), np.float32)


def parts(options):
    """The attention of kda_layer1 and the experts of moe, each alone in a layer that starts a block; see above."""
    start, ok = Slice(options, START), True
    f = fixture("kda_layer1")
    x = f["in"][0]  # one token; the mix of equal sources is the source
    got = start.run({**{"self_attn." + KDA[k]: f[k] for k in KDA}, "input_layernorm.weight": rms(x)}, x, x[None])
    ok &= close("kda_layer1: output", got["hidden"], f["out"][0])
    ok &= close("kda_layer1: state", got["kda"], f["state_out"][0])
    f = fixture("moe")
    for row, x in enumerate(f["in"][0]):
        # Sources of the mix: x, x and the attention's zero.
        weights = {**{"block_sparse_moe." + MOE[k]: f[k] for k in MOE}, "post_attention_layernorm.weight": rms(x)}
        got = start.run(weights, 1.5 * x[None], 1.5 * x[None, None])
        ok &= close(f"moe: row {row}", got["hidden"], f["out"][0][row][None])
    return ok


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--work", required=True, help="folder to write to")
    ap.add_argument("--bin", default="", help="folder of the programs; else from PATH")
    options = ap.parse_args()
    os.makedirs(options.work, exist_ok=True)
    ok = [whole_layer(options, "layer_kda", MIDDLE), whole_layer(options, "layer_mla", MLA), parts(options)]
    sys.exit(0 if all(ok) else 1)


if __name__ == "__main__":
    main()
