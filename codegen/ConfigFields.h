// A kernel's Config as a dictionary of its fields, by the visitor `Config::fields` that each kernel header has.
//
// Fields that have their default are left out, trailing defaults of an array too; element types are named: x_type = "bf16". A
// Config of which another one is made is a dictionary in its dictionary.
#pragma once
#include "codegen/kernels/common/types.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include <cstring>
#include <set>
#include <type_traits>

namespace k31 {

// Names of the element types of kernels; the order of the enumeration.
inline constexpr llvm::StringLiteral kDTypeNames[] = {"f32", "bf16", "u8", "i32", "f8", "i8"};

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

namespace config_detail {

inline mlir::Attribute toAttribute(mlir::Builder &b, int32_t v) { return b.getI64IntegerAttr(v); }
inline mlir::Attribute toAttribute(mlir::Builder &b, float v) { return b.getF32FloatAttr(v); }
inline mlir::Attribute toAttribute(mlir::Builder &b, kernels::DType v) {
  return b.getStringAttr(kDTypeNames[static_cast<int32_t>(v)]);
}
template <size_t N> mlir::Attribute toAttribute(mlir::Builder &b, const int32_t (&v)[N]) {
  size_t n = N;
  while (n > 0 && v[n - 1] == 0)
    --n;
  return b.getDenseI32ArrayAttr(llvm::ArrayRef<int32_t>(v, n));
}

// Each returns what was expected, or nothing when the value was read.
inline std::string fromAttribute(mlir::Attribute a, int32_t &v) {
  auto number = llvm::dyn_cast<mlir::IntegerAttr>(a);
  if (!number || !number.getValue().isSignedIntN(32))
    return "a number of 32 bits";
  v = static_cast<int32_t>(number.getValue().getSExtValue());
  return "";
}
inline std::string fromAttribute(mlir::Attribute a, float &v) {
  auto number = llvm::dyn_cast<mlir::FloatAttr>(a);
  if (!number || !number.getType().isF32())
    return "an f32 number";
  v = number.getValue().convertToFloat();
  return "";
}
inline std::string fromAttribute(mlir::Attribute a, kernels::DType &v) {
  auto text = llvm::dyn_cast<mlir::StringAttr>(a);
  for (auto [i, name] : llvm::enumerate(kDTypeNames))
    if (text && text.getValue() == name) {
      v = static_cast<kernels::DType>(i);
      return "";
    }
  return "one of \"f32\", \"bf16\", \"u8\", \"i32\", \"f8\", \"i8\"";
}
template <size_t N> std::string fromAttribute(mlir::Attribute a, int32_t (&v)[N]) {
  auto values = llvm::dyn_cast<mlir::DenseI32ArrayAttr>(a);
  if (!values || values.size() > static_cast<int64_t>(N))
    return "an array of at most " + std::to_string(N) + " i32";
  std::copy(values.asArrayRef().begin(), values.asArrayRef().end(), v);
  return "";
}

// A field that is a Config itself: of a kernel that is made of others.
template <class C>
concept IsConfig = requires { C::fields([](const char *, auto) {}); };
template <IsConfig C> mlir::Attribute toAttribute(mlir::Builder &b, const C &v);

template <class C, class Fn> void eachField(Fn &&fn) {
  C::fields([&](const char *name, auto member) {
    static_assert(std::is_member_object_pointer_v<decltype(member)>);
    fn(llvm::StringRef(name), member);
  });
}

} // namespace config_detail

template <class C> mlir::DictionaryAttr configToDictionary(mlir::MLIRContext *context, const C &config) {
  mlir::Builder b(context);
  C defaults;
  mlir::NamedAttrList fields;
  config_detail::eachField<C>([&](llvm::StringRef name, auto member) {
    if (std::memcmp(&(config.*member), &(defaults.*member), sizeof(config.*member)) != 0)
      fields.set(name, config_detail::toAttribute(b, config.*member));
  });
  return fields.getDictionary(context);
}

namespace config_detail {
template <IsConfig C> mlir::Attribute toAttribute(mlir::Builder &b, const C &v) { return configToDictionary(b.getContext(), v); }
} // namespace config_detail

// A field that the kernel does not have, or of the wrong kind, is an error.
template <class C> llvm::LogicalResult configFromDictionary(mlir::DictionaryAttr fields, C &config, EmitError emitError) {
  config = C();
  std::set<llvm::StringRef> known;
  bool ok = true;
  config_detail::eachField<C>([&](llvm::StringRef name, auto member) {
    known.insert(name);
    mlir::Attribute value = fields.get(name);
    if (!value || !ok)
      return;
    std::string expected;
    using Field = std::remove_reference_t<decltype(config.*member)>;
    if constexpr (config_detail::IsConfig<Field>) {
      if (auto inner = llvm::dyn_cast<mlir::DictionaryAttr>(value))
        ok = succeeded(configFromDictionary(inner, config.*member, emitError));
      else
        expected = "a dictionary of fields";
    } else {
      expected = config_detail::fromAttribute(value, config.*member);
    }
    if (!expected.empty()) {
      emitError() << "field '" << name << "' of the kernel's Config is " << value << "; expected " << expected;
      ok = false;
    }
  });
  for (mlir::NamedAttribute field : fields)
    if (ok && !known.count(field.getName().getValue())) {
      emitError() << "the kernel's Config has no field '" << field.getName().getValue() << "'";
      ok = false;
    }
  return llvm::success(ok);
}

// The struct as the kernel reads it. Fields are four bytes wide, so there is no padding and the bytes are the value.
template <class C> llvm::SmallVector<int32_t> configWords(const C &config) {
  static_assert(std::is_trivially_copyable_v<C> && sizeof(C) % 4 == 0 && alignof(C) == 4);
  llvm::SmallVector<int32_t> words(sizeof(C) / 4);
  std::memcpy(words.data(), &config, sizeof(C));
  return words;
}

} // namespace k31
