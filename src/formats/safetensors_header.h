// The JSON header of a safetensors file, parsed from untrusted bytes and rendered. Used by safetensors.cpp alone.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"

namespace stoker {

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own bound

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // sorted by place
  Metadata metadata;
};

// `value_bytes`: how many bytes follow the header; the tensors must fill them without gap or overlap.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t value_bytes,
                                                         const std::string& file);

// The header with its length in front, padded so that the values begin at a multiple of 8.
[[nodiscard]] std::string render_safetensors_header(std::span<const TensorToStore> tensors, const Metadata& metadata);

}  // namespace stoker
