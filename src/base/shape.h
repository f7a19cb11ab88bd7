// Shape: the sizes of a tensor's dimensions, outermost first; at most kMaxRank of them, kept inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

#include "base/dtype.h"

namespace stoker {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  // Negative positions count from the end: shape[-1] is the innermost size.
  [[nodiscard]] std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i < 0 ? rank_ + i : i)]; }
  void set(int i, std::int64_t size) { dims_[static_cast<std::size_t>(i < 0 ? rank_ + i : i)] = size; }
  void push_back(std::int64_t size);

  [[nodiscard]] std::int64_t elements() const;
  // The product of the sizes of dimensions [first, last).
  [[nodiscard]] std::int64_t elements(int first, int last) const;
  [[nodiscard]] std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

[[nodiscard]] std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// NumPy's rule: sizes are aligned at the end, and 1 stretches. Throws an Error that names `what`.
[[nodiscard]] Shape broadcast(const Shape& a, const Shape& b, const char* what);
[[nodiscard]] bool broadcasts_to(const Shape& from, const Shape& to);

// What a tensor looks like: element type and logical shape.
struct Spec {
  DType dtype = DType::f32;
  Shape shape;

  [[nodiscard]] std::int64_t bytes() const { return shape.elements() * size_of(dtype); }
  friend bool operator==(const Spec&, const Spec&) = default;
};

[[nodiscard]] std::string to_string(const Spec& spec);
std::ostream& operator<<(std::ostream& out, const Spec& spec);

}  // namespace stoker
