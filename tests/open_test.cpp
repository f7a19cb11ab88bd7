// open_dataset: every kind of folder and file, and what is said of those that are incomplete or damaged.
#include "data/open.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "temp_folder.h"

namespace stoker {
namespace {

using testing::expect_error;
using testing::TempFolder;

Shape shape_of(const TrainAndTest& sets) { return sets.train->item_shape(); }

std::pair<std::vector<float>, int> item_of(const Dataset& data, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(data.item_elements()));
  std::int32_t label = -1;
  data.get(index, values, label);
  return {values, label};
}

std::string idx(const std::vector<int>& sizes, const std::string& values) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const int size : sizes) text += {'\0', '\0', '\0', static_cast<char>(size)};
  return text + values;
}

// n images of 2x3 whose pixels count up from 0 through the whole file; labels repeat 0, 1, 2.
std::string some_images(int n) {
  std::string pixels;
  for (int i = 0; i < n * 6; ++i) pixels.push_back(static_cast<char>(i));
  return idx({n, 2, 3}, pixels);
}

std::string some_labels(int n) {
  std::string labels;
  for (int i = 0; i < n; ++i) labels.push_back(static_cast<char>(i % 3));
  return idx({n}, labels);
}

TEST(OpenDataset, GivesDigitsAndRandomByName) {
  const TrainAndTest digits = open_dataset("digits", {.seed = 1, .train_items = 30, .test_items = 20, .limit = 25});
  EXPECT_EQ(digits.train->size(), 25);
  EXPECT_EQ(digits.test->size(), 20);
  EXPECT_EQ(digits.train->classes(), 10);
  DataOptions options;
  options.item_shape = {32, 32, 3};
  options.classes = 4;
  const TrainAndTest random = open_dataset("random", options);
  EXPECT_EQ(random.train->size(), 8000);
  EXPECT_EQ(random.test->size(), 2000);
  EXPECT_EQ(shape_of(random), (Shape{32, 32, 3}));
  EXPECT_EQ(random.test->classes(), 4);
  EXPECT_NE(item_of(*random.train, 0), item_of(*random.test, 0));
}

TEST(OpenDataset, ReadsIdxFilesPlainAndGzip) {
  for (const bool zipped : {false, true}) {
    const TempFolder folder;
    const auto write = [&](const std::string& name, const std::string& content) {
      folder.write(name + (zipped ? ".gz" : ""), zipped ? testing::gzip(content) : content);
    };
    write("train-images-idx3-ubyte", some_images(5));
    write("train-labels-idx1-ubyte", some_labels(5));
    write("t10k-images-idx3-ubyte", some_images(2));
    write("t10k-labels-idx1-ubyte", some_labels(2));
    const TrainAndTest sets = open_dataset(folder.string());
    EXPECT_EQ(sets.train->size(), 5);
    EXPECT_EQ(sets.test->size(), 2);
    EXPECT_EQ(shape_of(sets), (Shape{2, 3, 1}));
    EXPECT_EQ(sets.test->classes(), 3) << "the training labels count too";
    const auto [values, label] = item_of(*sets.train, 4);
    EXPECT_EQ(label, 1);
    EXPECT_EQ(values[0], 24.0F / 255.0F);
  }
}

TEST(OpenDataset, SplitsAFolderThatHasOneSetOnly) {
  const TempFolder folder;
  folder.write("t10k-images-idx3-ubyte", some_images(10));
  folder.write("t10k-labels-idx1-ubyte", some_labels(10));
  const TrainAndTest sets = open_dataset(folder.string());
  EXPECT_EQ(sets.train->size(), 8);
  ASSERT_EQ(sets.test->size(), 2);
  EXPECT_EQ(item_of(*sets.test, 0).first[0], 48.0F / 255.0F) << "the last ones test";
  EXPECT_EQ(open_dataset(folder.string(), {.train_share = 0.5}).test->size(), 5);
  expect_error(Code::bad_argument, {"share"}, [&] { (void)open_dataset(folder.string(), {.train_share = 1}); });
}

TEST(OpenDataset, NamesWhatIsWrongWithIdxFiles) {
  const auto refuses = [](const std::string& images, const std::string& labels, const std::vector<std::string>& words,
                          const DataOptions& options = {}) {
    const TempFolder folder;
    folder.write("train-images-idx3-ubyte.gz", images);
    if (!labels.empty()) folder.write("train-labels-idx1-ubyte", labels);
    expect_error(Code::bad_file, words, [&] { (void)open_dataset(folder.string(), options); });
  };
  const std::string zipped = testing::gzip(some_images(4));
  refuses(zipped.substr(0, zipped.size() - 9), some_labels(4), {"train-images-idx3-ubyte.gz", "truncated"});
  refuses(some_images(4), "", {"train-labels-idx1-ubyte"});
  refuses(some_images(4), some_labels(3), {"4 images", "3 labels"});
  refuses(some_images(4), some_images(4), {"labels [n]"});
  refuses(some_labels(4), some_labels(4), {"images [n,H,W]"});
  refuses(some_images(4), some_labels(4), {"label 2", "2 classes"}, {.classes = 2});
  refuses("", some_labels(4), {"train-images-idx3-ubyte.gz", "too short"});
}

TEST(OpenDataset, ReadsCifarAlsoFromTheFolderInsideItsArchive) {
  std::string record(3073, '\x33');
  record[0] = 4;
  for (const std::string inner : {"", "cifar-10-batches-bin/"}) {
    const TempFolder folder;
    folder.write(inner + "data_batch_1.bin", record + record);
    folder.write(inner + "data_batch_2.bin", record);
    folder.write(inner + "test_batch.bin", record);
    const TrainAndTest sets = open_dataset(folder.string());
    EXPECT_EQ(sets.train->size(), 3);
    EXPECT_EQ(sets.test->size(), 1);
    EXPECT_EQ(shape_of(sets), (Shape{32, 32, 3}));
    EXPECT_EQ(sets.train->classes(), 10);
    EXPECT_EQ(item_of(*sets.test, 0), std::pair(std::vector<float>(3072, 0.2F), 4));
  }
}

TEST(OpenDataset, ReadsCsvFilesAndFolders) {
  const TempFolder folder;
  const std::string table = "label,a,b,c,d\n0,1,2,3,4\n2,5,6,7,8\n1,0,0,0,0\n1,0,0,0,255\n0,1,1,1,1\n";
  const auto path = folder.write("mine.csv", table);
  DataOptions options;
  const TrainAndTest file = open_dataset(path.string());
  EXPECT_EQ(file.train->size(), 4);
  EXPECT_EQ(file.test->size(), 1);
  EXPECT_EQ(shape_of(file), (Shape{4}));
  options.item_shape = {2, 2, 1};
  options.csv_scale = 1.0F / 255.0F;
  folder.write("train.csv", table);
  folder.write("test.csv.gz", testing::gzip("1,2,3,4,5\n"));
  const TrainAndTest both = open_dataset(folder.string(), options);
  EXPECT_EQ(both.train->size(), 5);
  EXPECT_EQ(both.test->classes(), 3);
  EXPECT_EQ(shape_of(both), (Shape{2, 2, 1}));
  EXPECT_FLOAT_EQ(item_of(*both.train, 3).first[3], 1.0F);
  options.item_shape = {3};
  expect_error(Code::bad_file, {"train.csv", "4 values", "[3]"}, [&] { (void)open_dataset(folder.string(), options); });
  folder.write("test.csv", "1,2,3\n");
  expect_error(Code::bad_file, {"[4]", "[2]"}, [&] { (void)open_dataset(folder.string()); });
}

TEST(OpenDataset, SaysWhatItLookedFor) {
  const TempFolder folder;
  expect_error(Code::bad_argument, {folder.string(), "train-images-idx3-ubyte", "data_batch_1.bin", "train.csv"},
               [&] { (void)open_dataset(folder.string()); });
  expect_error(Code::bad_argument, {"'digit'", "digits", "random"}, [] { (void)open_dataset("digit"); });
  const auto path = folder.write("image.png", "x");
  expect_error(Code::bad_argument, {"image.png", "folder"}, [&] { (void)open_dataset(path.string()); });
  const auto one = folder.write("one.csv", "1,2\n");
  expect_error(Code::bad_argument, {"too few"}, [&] { (void)open_dataset(one.string()); });
  std::filesystem::create_directory(folder.path() / "train.csv");
  expect_error(Code::io, {"train.csv"}, [&] { (void)open_dataset(folder.string()); });
}

// The folder with real data: $STOKER_DATA_DIR, or shared/data beside the repository.
std::filesystem::path real_data() {
  const char* given = std::getenv("STOKER_DATA_DIR");
  if (given != nullptr) return given;
  return std::filesystem::path(STOKER_TEST_DIR) / ".." / ".." / "shared" / "data";
}

TEST(OpenDataset, ReadsTheRealDigitsOfMnist) {
  const auto folder = real_data() / "mnist10k";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no MNIST: set STOKER_DATA_DIR to a folder with mnist10k/";
  const TrainAndTest sets = open_dataset(folder.string());
  EXPECT_EQ(sets.train->size(), 8000);
  EXPECT_EQ(sets.test->size(), 2000);
  EXPECT_EQ(sets.train->classes(), 10);
  EXPECT_EQ(shape_of(sets), (Shape{28, 28, 1}));
  std::vector<int> labels;
  for (std::int64_t i = 0; i < 5; ++i) labels.push_back(item_of(*sets.train, i).second);
  EXPECT_EQ(labels, (std::vector<int>{7, 2, 1, 0, 4}));
}

}  // namespace
}  // namespace stoker
