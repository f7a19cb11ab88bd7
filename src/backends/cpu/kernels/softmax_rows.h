// The SIMD part of softmax: one row at a time.
#pragma once

#include <cstdint>

namespace stoker::cpu {

// y = softmax(x), or its logarithm.
void softmax_row(const float* x, std::int64_t n, float* y);
void log_softmax_row(const float* x, std::int64_t n, float* y);

// Returns the loss -sum target * log softmax(x), where target is 1 - smoothing at `label` and smoothing / n everywhere;
// dx = softmax(x) - target. A label out of range gives NaN in both.
[[nodiscard]] float cross_entropy_row(const float* x, std::int64_t n, std::int64_t label, float smoothing, float* dx);

}  // namespace stoker::cpu
