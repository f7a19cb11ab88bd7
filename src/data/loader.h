// Loader: shuffles, cuts into batches, augments, and prepares the next batches on a thread of its own.
// Batch b of epoch e depends on the data set, the options and (e, b) alone: training can resume at any position.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "data/augment.h"
#include "data/dataset.h"

namespace stoker {

struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  friend bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

struct LoaderOptions {
  std::int64_t batch = 64;
  bool shuffle = true;
  std::uint64_t seed = 0;
  Augment augment;
  LoaderPosition start;
  std::int64_t epochs = std::numeric_limits<std::int64_t>::max();  // stops before this epoch
};

struct Batch {
  std::vector<float> items;          // [count, item shape]
  std::vector<std::int32_t> labels;  // [count]
  std::int64_t count = 0;            // below LoaderOptions::batch for the last one of an epoch
  LoaderPosition position;
  bool ends_epoch = false;
};

class Loader {
 public:
  // `data` must outlive the loader.
  Loader(const Dataset& data, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call; null after the last epoch. Waits for it if need be, and throws what the
  // data set threw while it was prepared.
  [[nodiscard]] const Batch* next();

  [[nodiscard]] std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  // Where the batch after the one last given stands: what to store to resume there.
  [[nodiscard]] LoaderPosition position() const { return next_position_; }

 private:
  static constexpr int kSlots = 3;  // two prepared or in the making, one with the consumer

  void produce();
  // False if the loader was stopped on the way.
  bool produce_epoch(std::int64_t epoch, std::int64_t first_batch);
  void shuffle(std::int64_t epoch);
  bool fill(Batch& batch, LoaderPosition position);
  [[nodiscard]] LoaderPosition after(LoaderPosition position) const;

  const Dataset& data_;
  const LoaderOptions options_;
  const std::int64_t batches_per_epoch_;
  LoaderPosition next_position_;  // the consumer's

  // The producer's own.
  std::vector<std::int64_t> order_;
  std::vector<float> scratch_;

  // Slots are used round robin; a slot between taken_ and made_ is full, the one before taken_ is with the consumer.
  std::array<Batch, kSlots> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t made_ = 0;  // guarded by mutex_, as are all below
  std::int64_t taken_ = 0;
  bool finished_ = false;
  std::exception_ptr error_;
  std::atomic<bool> stop_{false};  // also looked at between two items, so that a slow data set stops soon

  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace stoker
