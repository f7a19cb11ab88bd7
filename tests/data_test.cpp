// Data sets, augmentation and the loader: contents, determinism, resuming, and what bad input says.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "data/digits.h"
#include "data/loader.h"
#include "data/open.h"
#include "temp_folder.h"

namespace stoker {
namespace {

using testing::expect_error;
using testing::TempFolder;

struct Item {
  std::vector<float> values;
  std::int32_t label = -1;
  friend bool operator==(const Item&, const Item&) = default;
};

Item item_of(const Dataset& data, std::int64_t index) {
  Item item{std::vector<float>(static_cast<std::size_t>(data.item_elements()))};
  data.get(index, item.values, item.label);
  return item;
}

// Items of one value, their own number; labels count modulo ten.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t fails_at = -1, int slow_ms = 0)
      : Dataset("numbers", size, {1}, 10), fails_at_(fails_at), slow_ms_(slow_ms) {}

  void get(std::int64_t index, std::span<float> item, std::int32_t& label) const override {
    check(index, item);
    ++reads;
    require(index != fails_at_, Code::io, "numbers: item ", index, " is unreadable");
    if (slow_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms_));
    item[0] = static_cast<float>(index);
    label = static_cast<std::int32_t>(index % 10);
  }

  mutable std::atomic<int> reads{0};

 private:
  std::int64_t fails_at_;
  int slow_ms_;
};

// ---- data sets

TEST(Arrays, GivesTheCallersItems) {
  const std::vector<float> items = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> labels = {2, 0, 1};
  const DatasetPtr data = wrap_arrays(items, labels, {2}, 3);
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(item_of(*data, 1), (Item{{3, 4}, 0}));
  expect_error(Code::bad_argument, {"item 3 of 3"}, [&] { (void)item_of(*data, 3); });
  expect_error(Code::bad_argument, {"item -1"}, [&] { (void)item_of(*data, -1); });
  std::vector<float> small(1);
  std::int32_t label = 0;
  expect_error(Code::bad_argument, {"room for 1"}, [&] { data->get(0, small, label); });
}

TEST(Arrays, RefusesSizesAndLabelsThatDoNotFit) {
  const std::vector<float> items = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> labels = {2, 0, 1};
  expect_error(Code::bad_argument, {"6 values", "3 labels"}, [&] { (void)wrap_arrays(items, labels, {3}, 3); });
  expect_error(Code::bad_argument, {"item 0", "label 2"}, [&] { (void)wrap_arrays(items, labels, {2}, 2); });
  expect_error(Code::bad_argument, {"empty"}, [&] { (void)wrap_arrays({}, {}, {2}, 2); });
  expect_error(Code::bad_argument, {"[0]"}, [&] { (void)wrap_arrays({}, labels, {0}, 3); });
}

TEST(Subset, NumbersItsItemsFromZero) {
  const DatasetPtr part = make_subset(std::make_shared<Numbers>(10), 4, 3);
  EXPECT_EQ(part->size(), 3);
  EXPECT_EQ(item_of(*part, 2).values[0], 6);
  expect_error(Code::bad_argument, {"item 3"}, [&] { (void)item_of(*part, 3); });
  expect_error(Code::bad_argument, {"of 10"}, [] { (void)make_subset(std::make_shared<Numbers>(10), 8, 3); });
}

TEST(RandomData, DependsOnSeedAndIndexAlone) {
  const DatasetPtr a = make_random(50, {8, 8, 3}, 7, 1);
  const DatasetPtr b = make_random(1000, {8, 8, 3}, 7, 1);
  const DatasetPtr other = make_random(50, {8, 8, 3}, 7, 2);
  std::set<std::int32_t> labels;
  for (std::int64_t i = 0; i < 50; ++i) {
    const Item item = item_of(*a, i);
    EXPECT_EQ(item, item_of(*b, i));
    EXPECT_NE(item.values, item_of(*other, i).values);
    for (const float v : item.values) EXPECT_TRUE(v >= 0 && v < 1);
    labels.insert(item.label);
  }
  EXPECT_EQ(labels.size(), 7U);
  EXPECT_EQ(item_of(*make_random(2, {300, 300, 3}, 2, 1), 1).values.size(), 270'000U) << "larger than its pool";
}

TEST(Digits, AreTheSameWhateverTheSizeAndDifferBySeedAndSplit) {
  const DatasetPtr few = make_digits(20, Split::train, 3);
  const DatasetPtr many = make_digits(40, Split::train, 3);
  for (std::int64_t i = 0; i < 20; ++i) EXPECT_EQ(item_of(*few, i), item_of(*many, i));
  EXPECT_NE(item_of(*few, 0).values, item_of(*make_digits(20, Split::train, 4), 0).values);
  EXPECT_NE(item_of(*few, 0).values, item_of(*make_digits(20, Split::test, 3), 0).values);
  EXPECT_EQ(few->item_shape(), (Shape{28, 28, 1}));
}

TEST(Digits, HoldEveryClassEquallyInNoFixedOrder) {
  std::set<std::vector<int>> orders;
  for (std::int64_t block = 0; block < 20; ++block) {
    std::vector<int> labels;
    for (std::int64_t i = 0; i < 10; ++i) labels.push_back(digit_label(0, Split::train, block * 10 + i));
    orders.insert(labels);
    std::ranges::sort(labels);
    for (int digit = 0; digit < 10; ++digit) EXPECT_EQ(labels[static_cast<std::size_t>(digit)], digit);
  }
  EXPECT_GT(orders.size(), 15U);
}

// The nearest class mean: well above chance, well below what a network reaches, or the data would be no test of one.
TEST(Digits, AreLearnableButNotTrivial) {
  const DatasetPtr train = make_digits(1000, Split::train, 0);
  const DatasetPtr test = make_digits(500, Split::test, 0);
  std::vector<std::vector<double>> means(10, std::vector<double>(kDigitPixels));
  for (std::int64_t i = 0; i < train->size(); ++i) {
    const Item item = item_of(*train, i);
    for (std::size_t p = 0; p < item.values.size(); ++p)
      means[static_cast<std::size_t>(item.label)][p] += item.values[p] / 100;
  }
  int right = 0;
  for (std::int64_t i = 0; i < test->size(); ++i) {
    const Item item = item_of(*test, i);
    std::vector<double> distance(10);
    for (std::size_t c = 0; c < 10; ++c) {
      for (std::size_t p = 0; p < item.values.size(); ++p)
        distance[c] += (item.values[p] - means[c][p]) * (item.values[p] - means[c][p]);
    }
    right += std::ranges::min_element(distance) - distance.begin() == item.label ? 1 : 0;
  }
  EXPECT_GT(right, 300);
  EXPECT_LT(right, 470);
}

// ---- augmentation

TEST(Augment, IsKeyedBySeedEpochAndSample) {
  const Shape shape{6, 6, 1};
  const Augment augment{.shift = 2, .flip = true};
  const auto apply_to = [&](const AugmentKey& key) {
    std::vector<float> item(36);
    std::vector<float> scratch(36);
    std::iota(item.begin(), item.end(), 1.0F);
    apply(augment, shape, key, item, scratch);
    return item;
  };
  const auto differing = [&](auto key_of) {
    std::set<std::vector<float>> seen;
    for (int i = 0; i < 40; ++i) seen.insert(apply_to(key_of(i)));
    return seen.size();
  };
  EXPECT_EQ(apply_to({1, 2, 3}), apply_to({1, 2, 3}));
  EXPECT_GT(differing([](int i) { return AugmentKey{static_cast<std::uint64_t>(i), 0, 0}; }), 10U);
  EXPECT_GT(differing([](int i) { return AugmentKey{0, i, 0}; }), 10U);
  EXPECT_GT(differing([](int i) { return AugmentKey{0, 0, i}; }), 10U);
}

TEST(Augment, ShiftsByEveryAmountAndFillsWithZeros) {
  const Shape shape{5, 5, 2};
  std::map<std::pair<int, int>, int> moves;
  for (int sample = 0; sample < 400; ++sample) {
    std::vector<float> item(50);
    std::vector<float> scratch(50);
    item[(2 * 5 + 2) * 2] = 1;
    item[(2 * 5 + 2) * 2 + 1] = 2;
    apply({.shift = 1}, shape, {7, 0, sample}, item, scratch);
    const auto at = static_cast<int>(std::ranges::find(item, 1.0F) - item.begin());
    ASSERT_LT(at, 49);
    EXPECT_EQ(item[static_cast<std::size_t>(at) + 1], 2) << "channels stay together";
    EXPECT_EQ(std::accumulate(item.begin(), item.end(), 0.0F), 3);
    ++moves[{at / 2 / 5 - 2, at / 2 % 5 - 2}];
  }
  ASSERT_EQ(moves.size(), 9U);
  for (const auto& [move, count] : moves) {
    EXPECT_LE(std::abs(move.first) + std::abs(move.second), 2);
    EXPECT_GT(count, 15);
  }
}

TEST(Augment, FlipsAboutHalfOfTheSamples) {
  int flipped = 0;
  for (int sample = 0; sample < 200; ++sample) {
    std::vector<float> item = {1, 10, 2, 20, 3, 30};
    std::vector<float> scratch(6);
    apply({.flip = true}, {1, 3, 2}, {0, 0, sample}, item, scratch);
    if (item == std::vector<float>{3, 30, 2, 20, 1, 10}) {
      ++flipped;
    } else {
      EXPECT_EQ(item, (std::vector<float>{1, 10, 2, 20, 3, 30}));
    }
  }
  EXPECT_GT(flipped, 60);
  EXPECT_LT(flipped, 140);
}

TEST(Augment, NormalisesByChannel) {
  std::vector<float> item = {1, 2, 3, 4};
  const Augment augment{.shift = 3, .mean = {1, 2}, .deviation = {2, 4}};
  apply(augment.without_chance(), {1, 2, 2}, {}, item, {});
  EXPECT_EQ(item, (std::vector<float>{0, 0, 1, 0.5F}));
}

TEST(Augment, RefusesWhatCannotBeDone) {
  const auto refuses = [](const Augment& augment, const Shape& shape, const std::string& word) {
    expect_error(Code::bad_argument, {word}, [&] { check_augment(augment, shape); });
  };
  refuses({.shift = -1}, {4, 4, 1}, "-1");
  refuses({.shift = 4}, {4, 9, 1}, "out of sight");
  refuses({.flip = true}, {16}, "[H,W,C]");
  refuses({.mean = {0}, .deviation = {}}, {4, 4, 3}, "1 means but 0");
  refuses({.mean = {0, 0}, .deviation = {1, 1}}, {4, 4, 3}, "2 means");
  refuses({.mean = {0}, .deviation = {0}}, {4, 4, 3}, "above zero");
  check_augment({.shift = 3, .flip = true, .mean = {0}, .deviation = {1}}, {4, 4, 3});
}

// ---- loader

std::vector<Batch> take(Loader& loader, int most = 1000) {
  std::vector<Batch> batches;
  while (static_cast<int>(batches.size()) < most) {
    const Batch* batch = loader.next();
    if (batch == nullptr) break;
    batches.push_back(*batch);
  }
  return batches;
}

TEST(Loader, DeliversEveryItemOnceAnEpochTheLastSmallerBatchToo) {
  const Numbers data(10);
  Loader loader(data, {.batch = 4, .seed = 5, .epochs = 2});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  const std::vector<Batch> batches = take(loader);
  ASSERT_EQ(batches.size(), 6U);
  std::vector<float> epochs[2];
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(batches[i].count, i % 3 == 2 ? 2 : 4);
    EXPECT_EQ(batches[i].ends_epoch, i % 3 == 2);
    EXPECT_EQ(batches[i].items.size(), static_cast<std::size_t>(batches[i].count));
    for (std::size_t k = 0; k < batches[i].items.size(); ++k) {
      EXPECT_EQ(batches[i].labels[k], static_cast<int>(batches[i].items[k]) % 10) << "labels stay with their items";
      epochs[i / 3].push_back(batches[i].items[k]);
    }
  }
  EXPECT_NE(epochs[0], epochs[1]) << "every epoch has an order of its own";
  for (std::vector<float>& epoch : epochs) {
    std::ranges::sort(epoch);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(epoch[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(loader.next(), nullptr) << "the end stays the end";
}

TEST(Loader, KeepsTheOrderWhereNoShufflingIsAskedFor) {
  const Numbers data(7);
  Loader loader(data, {.batch = 100, .shuffle = false, .epochs = 1});
  const Batch* batch = loader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->items, (std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Loader, ResumesAtEveryPositionWithTheSameBits) {
  const DatasetPtr data = make_random(23, {6, 6, 2}, 5, 9);
  LoaderOptions options{.batch = 5, .seed = 11, .augment = {.shift = 2, .flip = true}, .epochs = 3};
  Loader whole(*data, options);
  const std::vector<Batch> all = take(whole);
  ASSERT_EQ(all.size(), 15U);
  for (std::size_t from = 0; from < all.size(); ++from) {
    Loader before(*data, options);
    EXPECT_EQ(take(before, static_cast<int>(from)).size(), from);
    LoaderOptions rest = options;
    rest.start = before.position();
    Loader resumed(*data, rest);
    const std::vector<Batch> batches = take(resumed);
    ASSERT_EQ(batches.size(), all.size() - from);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      EXPECT_EQ(batches[i].position, all[from + i].position);
      EXPECT_EQ(batches[i].items, all[from + i].items);
      EXPECT_EQ(batches[i].labels, all[from + i].labels);
    }
  }
}

TEST(Loader, TakesAnEpochsEndForTheNextOnesBeginning) {
  const Numbers data(10);
  Loader loader(data, {.batch = 5, .start = {.epoch = 3, .batch = 2}});
  EXPECT_EQ(loader.position(), (LoaderPosition{4, 0}));
  EXPECT_EQ(loader.next()->position, (LoaderPosition{4, 0}));
}

TEST(Loader, ShufflesDifferentlyBySeed) {
  const Numbers data(100);
  Loader a(data, {.batch = 100, .seed = 1});
  Loader b(data, {.batch = 100, .seed = 1});
  Loader c(data, {.batch = 100, .seed = 2});
  const std::vector<float> order = a.next()->items;
  EXPECT_EQ(order, b.next()->items);
  EXPECT_NE(order, c.next()->items);
}

TEST(Loader, KeepsABatchValidUntilTheNextIsTaken) {
  const Numbers data(1000);
  Loader loader(data, {.batch = 10, .shuffle = false});
  for (int i = 0; i < 300; ++i) {
    const Batch* batch = loader.next();
    const std::vector<float> before = batch->items;
    std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 20));  // lets the producer run ahead
    ASSERT_EQ(before, batch->items);
    ASSERT_EQ(batch->items[0], static_cast<float>(i % 100 * 10));
  }
}

TEST(Loader, GivesTheBatchesBeforeAnErrorThenTheErrorAgainAndAgain) {
  const Numbers data(10, 7);
  Loader loader(data, {.batch = 3, .shuffle = false});
  EXPECT_EQ(take(loader, 2).size(), 2U);
  for (int i = 0; i < 3; ++i) {
    expect_error(Code::io, {"item 7 is unreadable"}, [&] { (void)loader.next(); });
  }
}

TEST(Loader, StopsWhileItsDataSetIsStillBusy) {
  const Numbers slow(1'000'000, -1, 1);
  const auto start = std::chrono::steady_clock::now();
  {
    Loader loader(slow, {.batch = 1'000'000});
    while (slow.reads == 0) std::this_thread::yield();
  }
  // The batch under way would take a quarter of an hour; this is a hang guard, not a timing.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  for (int i = 0; i < 50; ++i) {
    const Numbers quick(10);
    Loader loader(quick, {.batch = 3});
    if (i % 2 == 0) (void)loader.next();
  }
}

TEST(Loader, RefusesOptionsThatMakeNoSense) {
  const Numbers data(10);
  expect_error(Code::bad_argument, {"batch of 0"}, [&] { const Loader loader(data, {.batch = 0}); });
  expect_error(Code::bad_argument, {"batch 3 of 2"}, [&] { const Loader loader(data, {.batch = 5, .start = {0, 3}}); });
  expect_error(Code::bad_argument, {"[H,W,C]"}, [&] { const Loader loader(data, {.augment = {.flip = true}}); });
}

}  // namespace
}  // namespace stoker
