// What the fuzz targets share: a parser may refuse its input with an Error, and do nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stoker/error.hpp"

namespace stoker::fuzz {

inline std::span<const std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

template <typename Action>
void errors_allowed(const Action& action) {
  try {
    action();
  } catch (const Error&) {  // any other exception ends the run as a finding
  }
}

// Stays in optimised builds, unlike assert.
inline void expect(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace stoker::fuzz
