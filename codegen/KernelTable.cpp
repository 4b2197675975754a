#include "codegen/KernelTable.h"
#include "codegen/kernels/attn/append.h"
#include "codegen/kernels/attn/attend.h"
#include "codegen/kernels/attn/batch_rows.h"
#include "codegen/kernels/attn/index_select.h"
#include "codegen/kernels/attn/kda.h"
#include "codegen/kernels/attn/kda_decode.h"
#include "codegen/kernels/attn/short_conv.h"
#include "codegen/kernels/coll/join.h"
#include "codegen/kernels/coll/own_rows.h"
#include "codegen/kernels/coll/pack.h"
#include "codegen/kernels/coll/part.h"
#include "codegen/kernels/coll/peer.h"
#include "codegen/kernels/coll/sum_row.h"
#include "codegen/kernels/coll/unpack.h"
#include "codegen/kernels/moe/combine.h"
#include "codegen/kernels/moe/grouped_linear.h"
#include "codegen/kernels/moe/permute.h"
#include "codegen/kernels/moe/route.h"
#include "codegen/kernels/nn/embed.h"
#include "codegen/kernels/nn/gather.h"
#include "codegen/kernels/nn/head_linear.h"
#include "codegen/kernels/nn/linear.h"
#include "codegen/kernels/nn/row.h"
#include "codegen/kernels/nn/sample.h"

using namespace llvm;
using namespace mlir;

namespace k31 {

using Words = FailureOr<SmallVector<int32_t>>;

template <class Config> static Words wordsOf(DictionaryAttr fields, EmitError emitError) {
  Config config;
  if (failed(configFromDictionary(fields, config, emitError)))
    return failure();
  return configWords(config);
}

namespace {
struct Entry {
  StringLiteral name;
  Words (*words)(DictionaryAttr, EmitError);
};
} // namespace

static constexpr Entry kKernels[] = {
    {"attn.append", wordsOf<kernels::append::Config>},
    {"attn.attend", wordsOf<kernels::attend::Config>},
    {"attn.batch_rows", wordsOf<kernels::batch_rows::Config>},
    {"attn.index_select", wordsOf<kernels::index_select::Config>},
    {"attn.kda", wordsOf<kernels::kda::Config>},
    {"attn.kda_decode", wordsOf<kernels::kda_decode::Config>},
    {"attn.short_conv", wordsOf<kernels::short_conv::Config>},
    {"coll.join", wordsOf<kernels::join::Config>},
    {"coll.own_rows", wordsOf<kernels::own_rows::Config>},
    {"coll.pack", wordsOf<kernels::pack::Config>},
    {"coll.part", wordsOf<kernels::part::Config>},
    {"coll.peer", wordsOf<kernels::peer::Config>},
    {"coll.sum_row", wordsOf<kernels::sum_row::Config>},
    {"coll.unpack", wordsOf<kernels::unpack::Config>},
    {"moe.combine", wordsOf<kernels::combine::Config>},
    {"moe.grouped_linear", wordsOf<kernels::grouped_linear::Config>},
    {"moe.permute", wordsOf<kernels::permute::Config>},
    {"moe.route", wordsOf<kernels::route::Config>},
    {"nn.embed", wordsOf<kernels::embed::Config>},
    {"nn.gather", wordsOf<kernels::gather::Config>},
    {"nn.head_linear", wordsOf<kernels::head_linear::Config>},
    {"nn.linear", wordsOf<kernels::linear::Config>},
    {"nn.row", wordsOf<kernels::row::Config>},
    {"nn.sample", wordsOf<kernels::sample::Config>},
};

std::vector<StringRef> kernelNames() {
  std::vector<StringRef> names;
  for (const Entry &entry : kKernels)
    names.push_back(entry.name);
  return names;
}

Words kernelConfigWords(StringRef kernel, DictionaryAttr fields, EmitError emitError) {
  for (const Entry &entry : kKernels)
    if (entry.name == kernel)
      return entry.words(fields, emitError);
  return emitError() << "there is no kernel '" << kernel << "'; kernels are " << llvm::join(kernelNames(), ", ");
}

} // namespace k31
