// open_dataset: from what a user typed ("digits", "random", a folder, a CSV file) to a training and a test set.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "formats/csv.h"

namespace stoker {

struct DataOptions {
  std::uint64_t seed = 0;        // of digits and random
  std::int64_t train_items = 0;  // of digits and random; 0: 8,000 and 2,000
  std::int64_t test_items = 0;
  Shape item_shape;          // of random (default [28,28,1]); CSV rows are taken as this, if given
  int classes = 0;           // of random (default 10); in files, labels must be below it, if given
  double train_share = 0.8;  // of a folder or file without a test set: the first ones train, the rest test
  std::int64_t limit = 0;    // at most so many items of each set; 0: all
  CsvOptions csv;            // csv.classes is ignored: `classes` above counts
  float csv_scale = 1.0F;    // values are multiplied by it: 1/255 for pixels
};

struct TrainAndTest {
  DatasetPtr train;
  DatasetPtr test;
};

// A folder holds MNIST's idx files (plain or .gz; names with '-idx' or '.idx'), CIFAR-10's binary batches, or train.csv
// and test.csv. Errors say what was looked for.
[[nodiscard]] TrainAndTest open_dataset(const std::string& spec, const DataOptions& options = {});

}  // namespace stoker
