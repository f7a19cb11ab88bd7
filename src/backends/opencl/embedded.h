// The kernel files that the build embeds (cmake/EmbedKernels.cmake).
#pragma once

#include <iterator>
#include <span>
#include <string_view>

namespace stoker::opencl {

struct EmbeddedFile {
  std::string_view name;  // "gemm" is kernels/gemm.cl
  std::string_view text;
};

[[nodiscard]] std::span<const EmbeddedFile> embedded_table();

}  // namespace stoker::opencl
