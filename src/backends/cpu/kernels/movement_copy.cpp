#include "backends/cpu/kernels/movement_copy.h"

#include <algorithm>
#include <cstring>

namespace stoker::cpu {
namespace {

constexpr std::int64_t kBlock = 16;         // of a transposition: 16 floats are a cache line
constexpr std::int64_t kPiece = 16 * 1024;  // of a long contiguous run
constexpr double kElementNanoseconds = 0.4;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

StridedCopy::Strides contiguous_strides(const Shape& shape) {
  StridedCopy::Strides strides{};
  for (int i = 0; i < shape.rank(); ++i) strides[at(i)] = shape.elements(i + 1, shape.rank());
  return strides;
}

StridedCopy::StridedCopy(const Shape& sizes, const Strides& src_strides, const Strides& dst_strides, int element_size)
    : element_size_(element_size) {
  for (int i = 0; i < sizes.rank(); ++i)
    add_dim({.size = sizes[i], .src = src_strides[at(i)], .dst = dst_strides[at(i)]});
  split_inner();
  std::int64_t outer = 1;
  for (int i = 0; i < rank_; ++i) outer *= dims_[at(i)].size;
  cut_ = cut_work(outer, 2.0 + kElementNanoseconds * static_cast<double>(inner_.size * across_.size));
}

void StridedCopy::add_dim(const Dim& dim) {
  if (dim.size == 1) return;
  Dim* last = rank_ > 0 ? &dims_[at(rank_ - 1)] : nullptr;
  if (last != nullptr && last->src == dim.src * dim.size && last->dst == dim.dst * dim.size) {
    *last = {.size = last->size * dim.size, .src = dim.src, .dst = dim.dst};
  } else {
    dims_[at(rank_++)] = dim;
  }
}

// Takes the innermost dimension out, cuts it where it is long, and finds the partner of a transposition.
void StridedCopy::split_inner() {
  inner_ = rank_ > 0 ? dims_[at(--rank_)] : Dim{.size = 1, .src = 1, .dst = 1};
  if (inner_.src == 1) {
    if (inner_.size >= 2 * kPiece && inner_.size % kPiece == 0) {
      dims_[at(rank_++)] = {.size = inner_.size / kPiece, .src = kPiece, .dst = kPiece};
      inner_.size = kPiece;
    }
    return;
  }
  for (int i = 0; i < rank_; ++i) {
    if (dims_[at(i)].src != 1) continue;
    across_ = dims_[at(i)];
    std::copy(dims_.begin() + i + 1, dims_.begin() + rank_, dims_.begin() + i);
    --rank_;
    // Blocks of whole lines are outer positions; what is left over makes the transposition one piece.
    if (across_.size > kBlock && across_.size % kBlock == 0) {
      dims_[at(rank_++)] = {.size = across_.size / kBlock, .src = kBlock, .dst = kBlock * across_.dst};
      across_.size = kBlock;
    }
    return;
  }
}

StridedCopy::Cursor StridedCopy::cursor_at(std::int64_t position) const {
  Cursor cursor;
  for (int i = rank_ - 1; i >= 0; --i) {
    const Dim& dim = dims_[at(i)];
    cursor.index[at(i)] = position % dim.size;
    cursor.src += cursor.index[at(i)] * dim.src;
    cursor.dst += cursor.index[at(i)] * dim.dst;
    position /= dim.size;
  }
  return cursor;
}

void StridedCopy::advance(Cursor& cursor) const {
  for (int i = rank_ - 1; i >= 0; --i) {
    const Dim& dim = dims_[at(i)];
    cursor.src += dim.src;
    cursor.dst += dim.dst;
    if (++cursor.index[at(i)] < dim.size) return;
    cursor.index[at(i)] = 0;
    cursor.src -= dim.size * dim.src;
    cursor.dst -= dim.size * dim.dst;
  }
}

template <typename T>
void StridedCopy::transpose_block(const T* src, T* dst) const {
  for (std::int64_t first = 0; first < inner_.size; first += kBlock) {
    const std::int64_t count = std::min(kBlock, inner_.size - first);
    for (std::int64_t across = 0; across < across_.size; across += kBlock) {
      const std::int64_t end = std::min(across + kBlock, across_.size);
      for (std::int64_t a = across; a < end; ++a) {
        const T* from = src + a + first * inner_.src;
        T* to = dst + a * across_.dst + first * inner_.dst;
        for (std::int64_t i = 0; i < count; ++i) to[i * inner_.dst] = from[i * inner_.src];
      }
    }
  }
}

template <typename T>
void StridedCopy::copy_inner(const T* src, T* dst) const {
  if (across_.src == 1) return transpose_block(src, dst);
  if (inner_.src == 1 && inner_.dst == 1) {
    std::memcpy(dst, src, static_cast<std::size_t>(inner_.size) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < inner_.size; ++i) dst[i * inner_.dst] = src[i * inner_.src];
}

template <typename T>
void StridedCopy::copy_task(const T* src, T* dst, std::int64_t task) const {
  Cursor cursor = cursor_at(cut_.begin(task));
  for (std::int64_t i = 0; i < cut_.count(task); ++i) {
    copy_inner(src + cursor.src, dst + cursor.dst);
    advance(cursor);
  }
}

void StridedCopy::run(const std::byte* src, std::byte* dst, ThreadPool& pool) const {
  const auto copy = [&](auto element) {
    using T = decltype(element);
    pool.run(cut_.tasks, [&](std::int64_t task, int) {
      copy_task(reinterpret_cast<const T*>(src), reinterpret_cast<T*>(dst), task);
    });
  };
  switch (element_size_) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

}  // namespace stoker::cpu
