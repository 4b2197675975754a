#include "compiler/Conversion/K31ToOps/Buckets.h"
#include "compiler/Options.h"
#include "dialects/Attn/Attn.h"
#include "mlir/IR/Diagnostics.h"
#include <algorithm>
#include <set>

using namespace mlir;

namespace k31 {

FailureOr<EntryOptions> readEntryOptions(ModuleOp module) {
  auto options = module->getAttrOfType<DictionaryAttr>("k31.options");
  if (!options)
    return module.emitError("has no k31.options, expected {max_context, max_batch, prefill_chunk, logit_rows, ...}");
  EntryOptions out;
  std::pair<StringRef, int64_t *> fields[] = {{"max_context", &out.maxContext},
                                              {"max_batch", &out.maxBatch},
                                              {"prefill_chunk", &out.prefillChunk},
                                              {"logit_rows", &out.logitRows}};
  for (auto [name, field] : fields) {
    auto value = options.getAs<IntegerAttr>(name);
    if (!value || value.getInt() < 1 || value.getInt() > (int64_t(1) << 30))
      return module.emitError("k31.options: ")
             << name << " is " << (value ? std::to_string(value.getInt()) : std::string("missing"))
             << ", expected an integer of at least 1";
    *field = value.getInt();
  }
  FailureOr<StringRef> form = optionWord(module, "moe_exchange", {"auto", "replicate", "dispatch", "two-level"});
  if (failed(form))
    return failure();
  out.moeExchange = form->str();
  auto target = options.getAs<StringAttr>("target");
  llvm::Expected<const Target *> known = Target::find(target ? target.getValue() : "cpu");
  if (!known)
    return module.emitError("k31.options: ") << llvm::toString(known.takeError());
  out.target = *known;
  return out;
}

SmallVector<Bucket> bucketsOf(const EntryOptions &o, int64_t tp) {
  const int64_t blocks = (o.maxContext + kBlockTokens - 1) / kBlockTokens;
  SmallVector<Bucket> out;
  // One token a sequence: alone, a few, all.
  for (int64_t n : std::set<int64_t>{1, std::min<int64_t>(4, o.maxBatch), o.maxBatch})
    out.push_back({"decode_b" + std::to_string(n), "decode", n, n, n, blocks, n});
  // Prompts: a short bucket for their ends, and the whole chunk.
  auto whole = [&](int64_t n) { return (n + tp - 1) / tp * tp; };
  for (int64_t n : std::set<int64_t>{whole(std::min<int64_t>(64, o.prefillChunk)), whole(o.prefillChunk)})
    out.push_back({"prefill_t" + std::to_string(n), "prefill", n, std::min(n, o.maxBatch), std::min(n, o.logitRows), blocks, n});
  return out;
}

} // namespace k31
