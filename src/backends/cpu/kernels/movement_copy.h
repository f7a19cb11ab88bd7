// A strided copy of a block of up to six dimensions: what every movement op is made of. Any element type, by its size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/tile_cut.h"
#include "base/shape.h"
#include "base/threads.h"

namespace stoker::cpu {

class StridedCopy {
 public:
  using Strides = std::array<std::int64_t, Shape::kMaxRank>;

  // Element (i0, i1, ...) of a block of `sizes` goes from src + sum i * src_strides to dst + sum i * dst_strides;
  // strides count elements.
  StridedCopy(const Shape& sizes, const Strides& src_strides, const Strides& dst_strides, int element_size);

  void run(const std::byte* src, std::byte* dst, ThreadPool& pool) const;

 private:
  struct Dim {
    std::int64_t size = 1;
    std::int64_t src = 0;
    std::int64_t dst = 0;
  };
  // Where a task stands in the outer dimensions.
  struct Cursor {
    std::array<std::int64_t, Shape::kMaxRank> index{};
    std::int64_t src = 0;
    std::int64_t dst = 0;
  };

  void add_dim(const Dim& dim);
  void split_inner();
  [[nodiscard]] Cursor cursor_at(std::int64_t position) const;
  void advance(Cursor& cursor) const;
  template <typename T>
  void copy_task(const T* src, T* dst, std::int64_t task) const;
  template <typename T>
  void copy_inner(const T* src, T* dst) const;
  template <typename T>
  void transpose_block(const T* src, T* dst) const;

  std::array<Dim, Shape::kMaxRank + 2> dims_{};  // outermost first; neighbours that run on are one
  int rank_ = 0;
  // The innermost dimension, and if it is not contiguous in the source a second one that is: a transposition.
  Dim inner_;
  Dim across_;
  int element_size_;
  Cut cut_;  // of the outer positions
};

// The strides of a contiguous tensor.
[[nodiscard]] StridedCopy::Strides contiguous_strides(const Shape& shape);

}  // namespace stoker::cpu
