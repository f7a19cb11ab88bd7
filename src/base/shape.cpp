#include "base/shape.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace stoker {

Shape::Shape(std::span<const std::int64_t> dims) {
  for (const std::int64_t size : dims) push_back(size);
}

void Shape::push_back(std::int64_t size) {
  require(rank_ < kMaxRank, Code::bad_argument, "a shape has at most ", kMaxRank, " dimensions");
  require(size >= 0, Code::bad_argument, "a dimension cannot be negative: ", size);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 16;
  require(size == 0 || elements() <= most / std::max<std::int64_t>(size, 1), Code::bad_argument,
          "a tensor this large cannot be addressed");
  dims_[static_cast<std::size_t>(rank_++)] = size;
}

std::int64_t Shape::elements() const { return elements(0, rank_); }

std::int64_t Shape::elements(int first, int last) const {
  std::int64_t product = 1;
  for (int i = first; i < last; ++i) product *= (*this)[i];
  return product;
}

bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }

Shape broadcast(const Shape& a, const Shape& b, const char* what) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t x = i < rank - a.rank() ? 1 : a[i - (rank - a.rank())];
    const std::int64_t y = i < rank - b.rank() ? 1 : b[i - (rank - b.rank())];
    require(x == y || x == 1 || y == 1, Code::bad_argument, what, ": shapes ", a, " and ", b, " do not broadcast");
    result.push_back(x == 1 ? y : x);
  }
  return result;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i) {
    if (from[-i] != 1 && from[-i] != to[-i]) return false;
  }
  return true;
}

std::string to_string(const Spec& spec) { return std::string(to_string(spec.dtype)) + to_string(spec.shape); }

std::ostream& operator<<(std::ostream& out, const Spec& spec) { return out << to_string(spec); }

}  // namespace stoker
