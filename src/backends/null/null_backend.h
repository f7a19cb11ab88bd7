// The null backend: plans everything, runs nothing. Graph, passes and plans are tested with it in milliseconds.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace stoker {

struct NullOptions {
  int prologue_tensors = 2;
  bool epilogues = true;
  std::int64_t workspace = 0;  // for every node
  std::string unsupported_op;  // an op to refuse
  std::int64_t small = 0;      // nodes whose results have at most so many elements are small
};

[[nodiscard]] std::unique_ptr<Backend> make_null_backend(const NullOptions& options = {});

}  // namespace stoker
