#include "runtime/text/vocabulary.h"
#include "tools/dev/fuzz/targets.h"

void k31::fuzz::vocabulary(Bytes bytes) {
  const auto vocabulary = text::Vocabulary::parse(fuzz::text(bytes));
  if (!vocabulary)
    return require_one_line(vocabulary.error().message);
  require(vocabulary->size() >= 256, "every single byte is a token");
  for (int32_t id = 0; id < vocabulary->size(); ++id)
    require(vocabulary->find(vocabulary->bytes(id)) == id, "the id of a token's bytes is its rank");
}
