// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

enum class DType : std::uint8_t { f32, f16, i32, i64, u8, b8 };

[[nodiscard]] constexpr int size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16: return 2;
    case DType::i64: return 8;
    case DType::u8:
    case DType::b8: return 1;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
    case DType::b8: return "bool";
  }
  return "?";
}

}  // namespace stoker
