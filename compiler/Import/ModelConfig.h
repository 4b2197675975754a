// config.json as a plain struct: what the builders need and nothing else. Layers count from 0 here, from 1 in the file.
#pragma once
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k31::importer {

enum class Family { kimi_k3, kimi_k31, kimi_linear };
llvm::StringRef familyName(Family family); // "kimi-k3", "kimi-k3.1", "kimi-linear"

struct ModelConfig {
  Family family = Family::kimi_k3;
  int64_t layers = 0, hidden = 0, vocab = 0;
  std::vector<int64_t> eos;
  double eps = 0;            // rms_norm_eps
  double mlaEps = 1e-6;      // of q_a_layernorm and kv_a_layernorm: the public model code's class default, not rms_norm_eps
  std::vector<bool> full;    // per layer: full attention (MLA); the others are KDA
  int64_t residualBlock = 0; // layers of a block of attention residuals; 0: plain residuals

  struct KDA {
    int64_t heads = 0, headDim = 0, taps = 0;
    std::optional<double> gateBound; // of the log decay; without one it is the softplus form
    bool fullRankGate = false;       // g_proj, else g_a_proj and g_b_proj
    int64_t width() const { return heads * headDim; }
  } kda;

  struct MLA {
    int64_t heads = 0, qRank = 0 /* 0: q_proj */, kvRank = 0, nope = 0, rope = 0, value = 0;
    bool gated = false;
  } mla;

  struct DSA {
    int64_t heads = 0, headDim = 0, topK = 0;
    double eps = 0;
    std::vector<bool> layer;
  };
  std::optional<DSA> dsa;

  struct Activation {
    std::string name; // "silu" or "situ"
    std::optional<double> beta, linearBeta;
  } activation;

  int64_t denseWidth = 0;
  int64_t firstMoe = 0, moeEvery = 1;
  struct MoE {
    int64_t experts = 0, topK = 0, shared = 0, width = 0, latent = 0 /* 0: experts work on the hidden size */;
    bool latentNorm = false, renormalize = true;
    double scale = 1;
    bool mayBeQuantized = false; // quantization_config is there; which tensors are packed shows in their names
  } moe;

  bool isDense(int64_t layer) const { return layer < firstMoe || layer % moeEvery != 0; }
  bool isSparse(int64_t layer) const { return dsa && dsa->layer[layer]; }
};

// Reads DIR/config.json; faults are diagnostics in `context`, one line each.
llvm::FailureOr<ModelConfig> readModelConfig(mlir::MLIRContext &context, llvm::StringRef folder, std::optional<double> mlaEps);

// The text of such a file; `path` is for messages.
llvm::FailureOr<ModelConfig> parseModelConfig(mlir::MLIRContext &context, llvm::StringRef json, llvm::StringRef path,
                                              std::optional<double> mlaEps = {});

} // namespace k31::importer
