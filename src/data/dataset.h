// Dataset: numbered items with a class label each. Items are f32, [H, W, C] for images (values in 0..1) or [D].
// Reading is const and may be done from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/shape.h"

namespace stoker {

class Dataset {
 public:
  Dataset(std::string name, std::int64_t size, const Shape& item_shape, int classes);
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] const Shape& item_shape() const { return item_shape_; }
  [[nodiscard]] std::int64_t item_elements() const { return item_shape_.elements(); }
  [[nodiscard]] int classes() const { return classes_; }

  // `item` has item_elements() values; 0 <= index < size(). May throw an Error.
  virtual void get(std::int64_t index, std::span<float> item, std::int32_t& label) const = 0;

 protected:
  // What get() asks of its arguments.
  void check(std::int64_t index, std::span<const float> item) const;

 private:
  std::string name_;
  std::int64_t size_;
  Shape item_shape_;
  int classes_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// A caller's arrays, borrowed: they must outlive the data set. items: [labels.size(), item_shape].
[[nodiscard]] DatasetPtr wrap_arrays(std::span<const float> items, std::span<const std::int32_t> labels,
                                     const Shape& item_shape, int classes, std::string name = "arrays");

// Images kept as bytes, a quarter of their size as f32; get() gives value / 255. `owner` keeps `pixels` alive.
[[nodiscard]] DatasetPtr make_pixels(std::shared_ptr<const void> owner, std::span<const std::byte> pixels,
                                     std::vector<std::int32_t> labels, const Shape& item_shape, int classes,
                                     std::string name);

// Values kept as f32; get() gives value * scale.
[[nodiscard]] DatasetPtr make_table(std::vector<float> values, std::vector<std::int32_t> labels,
                                    const Shape& item_shape, int classes, float scale, std::string name);

// Items [first, first + count) of another set.
[[nodiscard]] DatasetPtr make_subset(DatasetPtr from, std::int64_t first, std::int64_t count);

// Random values in [0, 1) and random labels, for timing: cheap to make, the same for the same seed.
[[nodiscard]] DatasetPtr make_random(std::int64_t size, const Shape& item_shape, int classes, std::uint64_t seed);

}  // namespace stoker
