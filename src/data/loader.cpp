#include "data/loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "data/keyed_random.h"

namespace stoker {
namespace {

std::int64_t count_batches(const Dataset& data, const LoaderOptions& options) {
  require(options.batch > 0, Code::bad_argument, "loader: a batch of ", options.batch, " items");
  return data.size() / options.batch + (data.size() % options.batch != 0 ? 1 : 0);
}

}  // namespace

Loader::Loader(const Dataset& data, const LoaderOptions& options)
    : data_(data), options_(options), batches_per_epoch_(count_batches(data, options)), next_position_(options.start) {
  check_augment(options_.augment, data_.item_shape());
  require(options_.start.epoch >= 0 && options_.start.batch >= 0 && options_.start.batch <= batches_per_epoch_,
          Code::bad_argument, "loader: cannot start at epoch ", options_.start.epoch, ", batch ", options_.start.batch,
          " of ", batches_per_epoch_);
  if (next_position_.batch == batches_per_epoch_) next_position_ = {next_position_.epoch + 1, 0};
  order_.resize(static_cast<std::size_t>(data_.size()));
  const auto room = static_cast<std::size_t>(std::min(options_.batch, data_.size()));
  const auto elements = static_cast<std::size_t>(data_.item_elements());
  if (options_.augment.any()) scratch_.resize(elements);
  for (Batch& slot : slots_) {
    slot.items.reserve(room * elements);
    slot.labels.reserve(room);
  }
  thread_ = std::thread([this] { produce(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const Batch* Loader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return made_ > taken_ || finished_; });
  if (made_ == taken_) {
    if (error_) std::rethrow_exception(error_);
    return nullptr;
  }
  const Batch& batch = slots_[static_cast<std::size_t>(taken_++ % kSlots)];
  next_position_ = after(batch.position);
  lock.unlock();
  changed_.notify_all();
  return &batch;
}

void Loader::produce() {
  try {
    LoaderPosition from = next_position_;
    while (from.epoch < options_.epochs && produce_epoch(from.epoch, from.batch)) from = {from.epoch + 1, 0};
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
}

bool Loader::produce_epoch(std::int64_t epoch, std::int64_t first_batch) {
  shuffle(epoch);
  for (std::int64_t batch = first_batch; batch < batches_per_epoch_; ++batch) {
    std::size_t slot = 0;
    {
      std::unique_lock lock(mutex_);
      // One slot stays with the consumer: the batch it was given last.
      changed_.wait(lock, [this] { return made_ - taken_ < kSlots - 1 || stop_; });
      if (stop_) return false;
      slot = static_cast<std::size_t>(made_ % kSlots);
    }
    if (!fill(slots_[slot], {epoch, batch})) return false;
    {
      const std::lock_guard lock(mutex_);
      ++made_;
    }
    changed_.notify_all();
  }
  return true;
}

// Fisher-Yates from the identity, so that an epoch's order does not depend on the epochs before it.
void Loader::shuffle(std::int64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  if (!options_.shuffle) return;
  Random random = keyed_random(options_.seed, Purpose::shuffle, static_cast<std::uint64_t>(epoch), 0);
  for (std::size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[static_cast<std::size_t>(random.below(i))]);
  }
}

bool Loader::fill(Batch& batch, LoaderPosition position) {
  const std::int64_t first = position.batch * options_.batch;
  const auto elements = static_cast<std::size_t>(data_.item_elements());
  batch.position = position;
  batch.count = std::min(options_.batch, data_.size() - first);
  batch.ends_epoch = position.batch + 1 == batches_per_epoch_;
  batch.items.resize(static_cast<std::size_t>(batch.count) * elements);
  batch.labels.resize(static_cast<std::size_t>(batch.count));
  for (std::int64_t i = 0; i < batch.count; ++i) {
    if (stop_) return false;
    const std::int64_t sample = order_[static_cast<std::size_t>(first + i)];
    const auto item = std::span(batch.items).subspan(static_cast<std::size_t>(i) * elements, elements);
    data_.get(sample, item, batch.labels[static_cast<std::size_t>(i)]);
    if (options_.augment.any()) {
      apply(options_.augment, data_.item_shape(), {options_.seed, position.epoch, sample}, item, scratch_);
    }
  }
  return true;
}

LoaderPosition Loader::after(LoaderPosition position) const {
  if (position.batch + 1 < batches_per_epoch_) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

}  // namespace stoker
