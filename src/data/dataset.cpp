#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "data/keyed_random.h"

namespace stoker {
namespace {

void check_labels(std::span<const std::int32_t> labels, int classes, const std::string& name) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < classes, Code::bad_argument, name, ": item ", i, " has label ", labels[i],
            ", not in 0..", classes - 1);
  }
}

void check_count(std::size_t values, std::size_t items, const Shape& item_shape, const std::string& name) {
  const auto elements = static_cast<std::size_t>(item_shape.elements());
  require(values % elements == 0 && values / elements == items, Code::bad_argument, name, ": ", values,
          " values where ", items, " labels with items of ", item_shape, " were expected");
}

std::size_t offset_of(std::int64_t index, const Shape& item_shape) {
  return static_cast<std::size_t>(index * item_shape.elements());
}

class Arrays final : public Dataset {
 public:
  Arrays(std::span<const float> items, std::span<const std::int32_t> labels, const Shape& item_shape, int classes,
         std::string name)
      : Dataset(std::move(name), static_cast<std::int64_t>(labels.size()), item_shape, classes),
        items_(items),
        labels_(labels) {
    check_count(items.size(), labels.size(), item_shape, this->name());
    check_labels(labels, classes, this->name());
  }

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    std::ranges::copy(items_.subspan(offset_of(index, item_shape()), item.size()), item.begin());
    label = labels_[static_cast<std::size_t>(index)];
  }

 private:
  std::span<const float> items_;
  std::span<const std::int32_t> labels_;
};

constexpr std::array<float, 256> kUnitOfByte = [] {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) / 255.0F;
  return table;
}();

class Pixels final : public Dataset {
 public:
  Pixels(std::shared_ptr<const void> owner, std::span<const std::byte> pixels, std::vector<std::int32_t> labels,
         const Shape& item_shape, int classes, std::string name)
      : Dataset(std::move(name), static_cast<std::int64_t>(labels.size()), item_shape, classes),
        owner_(std::move(owner)),
        pixels_(pixels),
        labels_(std::move(labels)) {
    check_count(pixels.size(), labels_.size(), item_shape, this->name());
    check_labels(labels_, classes, this->name());
  }

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    const auto from = pixels_.subspan(offset_of(index, item_shape()), item.size());
    for (std::size_t i = 0; i < item.size(); ++i) item[i] = kUnitOfByte[std::to_integer<std::size_t>(from[i])];
    label = labels_[static_cast<std::size_t>(index)];
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> pixels_;
  std::vector<std::int32_t> labels_;
};

class Table final : public Dataset {
 public:
  Table(std::vector<float> values, std::vector<std::int32_t> labels, const Shape& item_shape, int classes, float scale,
        std::string name)
      : Dataset(std::move(name), static_cast<std::int64_t>(labels.size()), item_shape, classes),
        values_(std::move(values)),
        labels_(std::move(labels)) {
    check_count(values_.size(), labels_.size(), item_shape, this->name());
    check_labels(labels_, classes, this->name());
    for (float& value : values_) value *= scale;
  }

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    std::ranges::copy(std::span(values_).subspan(offset_of(index, item_shape()), item.size()), item.begin());
    label = labels_[static_cast<std::size_t>(index)];
  }

 private:
  std::vector<float> values_;
  std::vector<std::int32_t> labels_;
};

class Subset final : public Dataset {
 public:
  Subset(DatasetPtr from, std::int64_t first, std::int64_t count)
      : Dataset(from->name(), count, from->item_shape(), from->classes()), from_(std::move(from)), first_(first) {}

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    from_->get(first_ + index, item, label);
  }

 private:
  DatasetPtr from_;
  std::int64_t first_;
};

// An item is a stretch of one pool of random values, at a random place: making one costs a copy, so that timing with
// it times the training and not the generator.
class RandomItems final : public Dataset {
 public:
  RandomItems(std::int64_t size, const Shape& item_shape, int classes, std::uint64_t seed)
      : Dataset("random", size, item_shape, classes), seed_(seed), pool_(kPool) {
    Random random = keyed_random(seed, Purpose::random_items, 0, 0);
    for (float& value : pool_) value = random.uniform();
  }

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    Random random = keyed_random(seed_, Purpose::random_items, 1, static_cast<std::uint64_t>(index));
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes())));
    std::size_t at = static_cast<std::size_t>(random.below(kPool));
    while (!item.empty()) {
      const std::size_t count = std::min(item.size(), kPool - at);
      std::ranges::copy(std::span(pool_).subspan(at, count), item.begin());
      item = item.subspan(count);
      at = 0;
    }
  }

 private:
  static constexpr std::size_t kPool = 65521;  // prime: repeats of large items are not aligned with their rows

  std::uint64_t seed_;
  std::vector<float> pool_;
};

}  // namespace

Dataset::Dataset(std::string name, std::int64_t size, const Shape& item_shape, int classes)
    : name_(std::move(name)), size_(size), item_shape_(item_shape), classes_(classes) {
  require(size > 0, Code::bad_argument, name_, ": the data set is empty");
  require(item_shape.rank() >= 1 && item_shape.elements() > 0, Code::bad_argument, name_, ": items of shape ",
          item_shape, " have no values");
  require(classes > 0, Code::bad_argument, name_, ": a data set of ", classes, " classes");
}

void Dataset::check(std::int64_t index, std::span<const float> item) const {
  require(index >= 0 && index < size_, Code::bad_argument, name_, ": item ", index, " of ", size_);
  require(static_cast<std::int64_t>(item.size()) == item_elements(), Code::bad_argument, name_, ": room for ",
          item.size(), " values where an item has ", item_elements());
}

DatasetPtr wrap_arrays(std::span<const float> items, std::span<const std::int32_t> labels, const Shape& item_shape,
                       int classes, std::string name) {
  return std::make_shared<Arrays>(items, labels, item_shape, classes, std::move(name));
}

DatasetPtr make_pixels(std::shared_ptr<const void> owner, std::span<const std::byte> pixels,
                       std::vector<std::int32_t> labels, const Shape& item_shape, int classes, std::string name) {
  return std::make_shared<Pixels>(std::move(owner), pixels, std::move(labels), item_shape, classes, std::move(name));
}

DatasetPtr make_table(std::vector<float> values, std::vector<std::int32_t> labels, const Shape& item_shape, int classes,
                      float scale, std::string name) {
  return std::make_shared<Table>(std::move(values), std::move(labels), item_shape, classes, scale, std::move(name));
}

DatasetPtr make_subset(DatasetPtr from, std::int64_t first, std::int64_t count) {
  require(first >= 0 && count > 0 && first <= from->size() - count, Code::bad_argument, from->name(), ": ", count,
          " items from number ", first, " on, of ", from->size());
  return std::make_shared<Subset>(std::move(from), first, count);
}

DatasetPtr make_random(std::int64_t size, const Shape& item_shape, int classes, std::uint64_t seed) {
  return std::make_shared<RandomItems>(size, item_shape, classes, seed);
}

}  // namespace stoker
