// idx, the format of MNIST's files: a magic word with type and rank, big-endian sizes, then the values.
// Only unsigned bytes, the type of all known image and label files, are read.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/shape.h"

namespace stoker {

struct IdxView {
  Shape shape;
  std::span<const std::byte> values;  // shape.elements() of them, inside the bytes that were parsed
};

// Errors (Code::bad_file) name `file`.
[[nodiscard]] IdxView parse_idx(std::span<const std::byte> bytes, std::string_view file);

}  // namespace stoker
