#include "compiler/Options.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

FailureOr<StringRef> k31::optionWord(ModuleOp module, StringRef name, ArrayRef<StringRef> words) {
  auto options = module->getAttrOfType<DictionaryAttr>("k31.options");
  Attribute given = options ? options.get(name) : Attribute();
  if (!given)
    return words.front();
  if (auto word = dyn_cast<StringAttr>(given); word && llvm::is_contained(words, word.getValue()))
    return word.getValue();
  return module.emitError("k31.options: ") << name << " is " << given << ", expected " << llvm::join(words, ", ");
}
