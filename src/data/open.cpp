#include "data/open.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/digits.h"
#include "formats/cifar.h"
#include "formats/gzip.h"
#include "formats/idx.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTrainItems = 8000;
constexpr std::int64_t kTestItems = 2000;
constexpr const char* kLookedFor =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (each plain or "
    ".gz), data_batch_1.bin .. data_batch_5.bin, test_batch.bin, train.csv, test.csv";

// The values of one file or a pair of files, before the number of classes is known.
struct Loaded {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> pixels;  // images, or
  std::vector<float> values;          // a table
  std::vector<std::int32_t> labels;
  Shape item_shape;
};

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::optional<fs::path> first_of(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_there(folder / name)) return folder / name;
  }
  return std::nullopt;
}

std::optional<fs::path> find_idx(const fs::path& folder, const std::string& stem, const std::string& kind) {
  return first_of(folder, {stem + "-" + kind, stem + "-" + kind + ".gz", stem + "." + kind, stem + "." + kind + ".gz"});
}

int classes_of(const Loaded& train, const Loaded* test, int given, const std::string& name) {
  int most = *std::ranges::max_element(train.labels);
  if (test != nullptr) most = std::max(most, *std::ranges::max_element(test->labels));
  require(given == 0 || most < given, Code::bad_file, name, ": a label ", most, " where ", given,
          " classes were expected");
  return given > 0 ? given : most + 1;
}

DatasetPtr to_dataset(Loaded loaded, int classes, const DataOptions& options, const std::string& name) {
  if (loaded.owner) {
    return make_pixels(std::move(loaded.owner), loaded.pixels, std::move(loaded.labels), loaded.item_shape, classes,
                       name);
  }
  return make_table(std::move(loaded.values), std::move(loaded.labels), loaded.item_shape, classes, options.csv_scale,
                    name);
}

TrainAndTest split(const DatasetPtr& all, double train_share) {
  require(train_share > 0 && train_share < 1, Code::bad_argument, "data: a training share of ", train_share,
          " is not between 0 and 1");
  const std::int64_t train = std::llround(static_cast<double>(all->size()) * train_share);
  require(train > 0 && train < all->size(), Code::bad_argument, all->name(), ": ", all->size(),
          " items are too few to split into a training and a test set");
  return {make_subset(all, 0, train), make_subset(all, train, all->size() - train)};
}

TrainAndTest join(Loaded train, std::optional<Loaded> test, const DataOptions& options, const std::string& name) {
  const int classes = classes_of(train, test ? &*test : nullptr, options.classes, name);
  if (!test) return split(to_dataset(std::move(train), classes, options, name), options.train_share);
  require(train.item_shape == test->item_shape, Code::bad_file, name, ": items of the training set are ",
          train.item_shape, ", those of the test set ", test->item_shape);
  return {to_dataset(std::move(train), classes, options, name), to_dataset(std::move(*test), classes, options, name)};
}

Loaded load_idx(const fs::path& images_path, const fs::path& labels_path) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(read_file_inflated(images_path));
  const IdxView images = parse_idx(*bytes, images_path.string());
  const int rank = images.shape.rank();
  require(rank == 3 || rank == 4, Code::bad_file, images_path.string(), ": an idx file of ", images.shape,
          " where images [n,H,W] were expected");
  const std::vector<std::byte> label_bytes = read_file_inflated(labels_path);
  const IdxView labels = parse_idx(label_bytes, labels_path.string());
  require(labels.shape.rank() == 1, Code::bad_file, labels_path.string(), ": an idx file of ", labels.shape,
          " where labels [n] were expected");
  require(labels.shape[0] == images.shape[0], Code::bad_file, images_path.string(), " has ", images.shape[0],
          " images, but ", labels_path.string(), " has ", labels.shape[0], " labels");
  Loaded loaded{.owner = bytes, .pixels = images.values};
  loaded.item_shape = {images.shape[1], images.shape[2], rank == 4 ? images.shape[3] : 1};
  for (const std::byte label : labels.values) loaded.labels.push_back(std::to_integer<std::int32_t>(label));
  return loaded;
}

std::optional<Loaded> load_idx_pair(const fs::path& folder, const std::string& stem) {
  const auto images = find_idx(folder, stem + "-images", "idx3-ubyte");
  const auto labels = find_idx(folder, stem + "-labels", "idx1-ubyte");
  if (!images && !labels) return std::nullopt;
  require(images && labels, Code::bad_file, folder.string(), " has ", stem, " ", images ? "images" : "labels",
          " but no ", stem, images ? "-labels-idx1-ubyte" : "-images-idx3-ubyte", "[.gz]");
  return load_idx(*images, *labels);
}

Loaded load_cifar(const std::vector<fs::path>& paths) {
  const auto images = std::make_shared<CifarImages>();
  for (const fs::path& path : paths) parse_cifar10(read_file_inflated(path), path.string(), *images);
  Loaded loaded{.owner = images, .pixels = std::as_bytes(std::span(images->pixels)), .labels = images->labels};
  loaded.item_shape = {kCifarSide, kCifarSide, kCifarChannels};
  return loaded;
}

Loaded load_csv(const fs::path& path, const DataOptions& options) {
  const std::vector<std::byte> bytes = read_file_inflated(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CsvOptions csv = options.csv;
  csv.classes = options.classes;
  CsvTable table = parse_csv(text, path.string(), csv);
  Loaded loaded{.values = std::move(table.values), .labels = std::move(table.labels)};
  loaded.item_shape = options.item_shape.rank() > 0 ? options.item_shape : Shape{table.columns};
  require(loaded.item_shape.elements() == table.columns, Code::bad_file, path.string(), ": ", table.columns,
          " values a row where items of ", loaded.item_shape, " were expected");
  return loaded;
}

std::optional<TrainAndTest> open_idx_folder(const fs::path& folder, const DataOptions& options) {
  std::optional<Loaded> train = load_idx_pair(folder, "train");
  std::optional<Loaded> test = load_idx_pair(folder, "t10k");
  if (!train && !test) return std::nullopt;
  if (!train) std::swap(train, test);
  return join(std::move(*train), std::move(test), options, folder.string());
}

std::optional<TrainAndTest> open_cifar_folder(const fs::path& folder, DataOptions options) {
  std::vector<fs::path> batches;
  for (int i = 1; i <= 5; ++i) {
    const fs::path path = folder / str("data_batch_", i, ".bin");
    if (is_there(path)) batches.push_back(path);
  }
  const fs::path test_path = folder / "test_batch.bin";
  std::optional<Loaded> test;
  if (is_there(test_path)) test = load_cifar({test_path});
  if (batches.empty() && !test) return std::nullopt;
  if (options.classes == 0) options.classes = kCifarClasses;
  if (batches.empty()) return join(std::move(*test), std::nullopt, options, folder.string());
  return join(load_cifar(batches), std::move(test), options, folder.string());
}

std::optional<TrainAndTest> open_csv_folder(const fs::path& folder, const DataOptions& options) {
  const auto train = first_of(folder, {"train.csv", "train.csv.gz"});
  const auto test = first_of(folder, {"test.csv", "test.csv.gz"});
  if (!train) return std::nullopt;
  Loaded loaded = load_csv(*train, options);
  std::optional<Loaded> loaded_test;
  if (test) loaded_test = load_csv(*test, options);
  return join(std::move(loaded), std::move(loaded_test), options, folder.string());
}

TrainAndTest open_path(const fs::path& path, const DataOptions& options) {
  require(is_there(path), Code::bad_argument, "data: '", path.string(),
          "' is neither 'digits' nor 'random' nor a folder or CSV file that exists");
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const std::string name = path.filename().string();
    require(name.ends_with(".csv") || name.ends_with(".csv.gz"), Code::bad_argument, "data: ", path.string(),
            " is a file, but not a .csv one; for idx and CIFAR-10 give the folder");
    return join(load_csv(path, options), std::nullopt, options, path.string());
  }
  for (const auto& open : {open_idx_folder, open_csv_folder}) {
    if (auto found = open(path, options)) return *found;
  }
  for (const fs::path& folder : {path, path / "cifar-10-batches-bin"}) {
    if (auto found = open_cifar_folder(folder, options)) return *found;
  }
  fail(Code::bad_argument, "data: no data set in the folder ", path.string(), "; looked for ", kLookedFor);
}

TrainAndTest open_built_in(const std::string& spec, const DataOptions& options) {
  const std::int64_t train = options.train_items > 0 ? options.train_items : kTrainItems;
  const std::int64_t test = options.test_items > 0 ? options.test_items : kTestItems;
  if (spec == "digits") {
    const auto kept = [&](std::int64_t items) { return options.limit > 0 ? std::min(items, options.limit) : items; };
    return {make_digits(kept(train), Split::train, options.seed), make_digits(kept(test), Split::test, options.seed)};
  }
  const Shape shape = options.item_shape.rank() > 0 ? options.item_shape : Shape{kDigitSide, kDigitSide, 1};
  const DatasetPtr all = make_random(train + test, shape, options.classes > 0 ? options.classes : 10, options.seed);
  return {make_subset(all, 0, train), make_subset(all, train, test)};
}

DatasetPtr limited(DatasetPtr data, std::int64_t limit) {
  return limit > 0 && limit < data->size() ? make_subset(std::move(data), 0, limit) : data;
}

}  // namespace

TrainAndTest open_dataset(const std::string& spec, const DataOptions& options) {
  require(options.train_items >= 0 && options.test_items >= 0 && options.limit >= 0 && options.classes >= 0,
          Code::bad_argument, "data: sizes cannot be negative");
  const bool built_in = spec == "digits" || spec == "random";
  TrainAndTest sets = built_in ? open_built_in(spec, options) : open_path(spec, options);
  return {limited(std::move(sets.train), options.limit), limited(std::move(sets.test), options.limit)};
}

}  // namespace stoker
