// Flags and formats that several commands share.
#include <charconv>
#include <cstdio>

#include "cli/cli.h"

namespace stoker::cli {
namespace {

constexpr const char* kLayersPrefix = "layers-";  // as Model::layers names its models

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

double parse_number(const std::string& text, const std::string& what) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) throw Error(Code::bad_argument, what + ": '" + text + "' is not a number");
  return value;
}

Model named_model(const std::string& name) {
  if (!name.starts_with(kLayersPrefix)) return Model::named(name);
  Sizes sizes;
  for (const std::string& size : split(name.substr(std::string(kLayersPrefix).size()), ',')) {
    sizes.push_back(static_cast<std::int64_t>(parse_number(size, name)));
  }
  return Model::layers(sizes);
}

}  // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("model", flags.name, "A model by name (stoker models lists them)")->option_text("MODEL");
  command.add_option("--layers", flags.layers, "Instead: fully connected layers of these sizes, ReLU between them")
      ->delimiter(',')
      ->option_text("784,256,128,16");
}

bool given(const ModelFlags& flags) { return !flags.name.empty() || !flags.layers.empty(); }

Model make_model(const ModelFlags& flags, const std::string& otherwise) {
  if (!flags.name.empty() && !flags.layers.empty()) {
    throw Error(Code::bad_argument, "give a model's name or --layers, not both");
  }
  if (!flags.layers.empty()) return Model::layers(flags.layers);
  if (!flags.name.empty()) return named_model(flags.name);
  if (!otherwise.empty()) return named_model(otherwise);
  throw Error(Code::bad_argument, "which model? Give its name (stoker models lists them) or --layers 784,128,10");
}

Data open_data(const DataFlags& flags, const Model& model) {
  OpenOptions options{.seed = flags.seed, .limit = flags.items, .csv_scale = static_cast<float>(flags.scale)};
  if (flags.data == "random") {
    options.item = model.item();
    options.classes = static_cast<int>(std::min<std::int64_t>(model.outputs(), 10));
  }
  if (flags.data == "random" || flags.data == "digits") {
    options.train_items = flags.items;
    options.test_items = flags.items;
  }
  return Data::open(flags.data, options);
}

void add_opencl_flags(CLI::App& command, bool& self_test, bool& replay) {
  command.add_flag_callback(
      "--no-self-test", [&self_test] { self_test = false; },
      "OpenCL: do not check the kernels of a device that is new");
  command.add_flag_callback(
      "--no-replay", [&replay] { replay = false; },
      "OpenCL: launch kernels one by one, even where the step can be recorded");
}

void note_to_stderr(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
void print_note(const std::string& line) { std::printf("%s\n", line.c_str()); }

Augmentation parse_augmentation(const std::string& text) {
  Augmentation augmentation;
  if (text.empty()) return augmentation;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> words = split(part, ':');
    if (words[0] == "flip" && words.size() == 1) {
      augmentation.flip = true;
    } else if (words[0] == "shift" && words.size() == 2) {
      augmentation.shift = static_cast<int>(parse_number(words[1], "shift"));
    } else if (words[0] == "normalise" && words.size() == 2 && split(words[1], '/').size() == 2) {
      const std::vector<std::string> numbers = split(words[1], '/');
      augmentation.mean = {static_cast<float>(parse_number(numbers[0], "normalise"))};
      augmentation.deviation = {static_cast<float>(parse_number(numbers[1], "normalise"))};
    } else {
      throw Error(Code::bad_argument,
                  "--augment: '" + part + "' is not known; write for example shift:2,flip,normalise:0.5/0.25");
    }
  }
  return augmentation;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string megabytes(std::int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e6, 1) + " MB"; }

std::string shape_text(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace stoker::cli
