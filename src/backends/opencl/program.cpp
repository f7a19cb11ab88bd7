#include "backends/opencl/program.h"

#include "backends/opencl/dump.h"
#include "backends/opencl/embedded.h"
#include "base/error.h"
#include "base/sha256.h"

namespace stoker::opencl {
namespace {

constexpr const char* kFormat = "stoker program 1";  // changes when what is stored under a key does
// On disk. A program takes 20 to 200 kB, a net some 5 MB; what is tuned, ten times that.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20U;

}  // namespace

std::string_view embedded_source(std::string_view file) {
  std::string known;
  for (const EmbeddedFile& row : embedded_table()) {
    if (row.name == file) return row.text;
    known += str(known.empty() ? "" : ", ", row.name);
  }
  fail(Code::bad_argument, "no kernel file '", file, "'; there are: ", known);
}

std::vector<std::string_view> embedded_files() {
  std::vector<std::string_view> names;
  for (const EmbeddedFile& row : embedded_table()) names.push_back(row.name);
  return names;
}

std::string embedded_digest() {
  std::string texts;
  for (const EmbeddedFile& row : embedded_table()) texts += row.text;
  return hex(sha256(texts));
}

std::string full_source(const Program& program) {
  std::string source;
  for (const auto& [name, value] : program.defines) source += str("#define ", name, " ", value, "\n");
  source += program.header;
  if (!source.empty() && source.back() != '\n') source += '\n';
  source += embedded_source(program.file);
  return source;
}

bool sees_group(const Program& program) {
  const std::string source = full_source(program);
  const auto has = [&](std::string_view word) { return source.find(word) != std::string::npos; };
  return has("get_local_") || has("get_group_") || has("barrier(") || has("reqd_work_group_size");
}

Programs::Programs(Api& api, cl_context context, cl_device_id id, const Device& device, cl_command_queue queue)
    : api_(api), context_(context), id_(id), device_(device), queue_(queue), cache_("programs") {}

// What was built before an interruption need not be built again.
Programs::~Programs() {
  try {
    save();
  } catch (const std::exception&) {  // no memory: then not
  }
}

std::string Programs::cache_key(const std::string& source) const {
  return str(kFormat, "\n", device_.key(), kBuildOptions, "\n", source);
}

Handle<cl_program> Programs::load(const std::string& source) {
  if (device_.quirks.no_binary_cache) return {};
  const auto binary = cache_.load(cache_key(source));
  if (!binary.has_value() || binary->empty()) return {};
  try {
    return api_.build_from_binary(context_, id_, *binary, kBuildOptions);
  } catch (const Error&) {
    return {};  // of another driver under the same name, or refused for whatever reason: built anew
  }
}

Handle<cl_program> Programs::build(const Program& program, const std::string& source) {
  if (interrupt_) interrupt_();
  try {
    return api_.build_from_source(context_, id_, source, kBuildOptions);
  } catch (const Error& first) {
    // Some drivers' compilers fail now and then while the GPU is busy.
    try {
      if (queue_ != nullptr) api_.finish(queue_);
      return api_.build_from_source(context_, id_, source, kBuildOptions);
    } catch (const Error&) {
      fail(first.code(), "kernels/", program.file, ".cl cannot be built on ", device_.name, ": ", first.what());
    }
  }
}

Programs::Entry& Programs::entry(const Program& program) {
  const auto found = entries_.find(program);
  if (found != entries_.end()) return found->second;
  Entry made{.program = {}, .source = full_source(program), .from_cache = true, .saved = true};
  made.program = load(made.source);
  if (!made.program) {
    made.program = build(program, made.source);
    made.from_cache = false;
    made.saved = false;
  }
  return entries_.emplace(program, std::move(made)).first->second;
}

Handle<cl_kernel> Programs::kernel(const Program& program, const std::string& name) {
  dump_program(program, name);  // first, so that one that cannot be built is there to look at
  Entry& found = entry(program);
  if (!found.from_cache) return api_.create_kernel(found.program.get(), name);
  try {
    return api_.create_kernel(found.program.get(), name);
  } catch (const Error&) {
    // A binary that loads and yet lacks its kernels is damaged too.
    found.program = build(program, found.source);
    found.from_cache = false;
    found.saved = false;
    return api_.create_kernel(found.program.get(), name);
  }
}

void Programs::save() {
  cache_note_.clear();
  if (device_.quirks.no_binary_cache) return;
  bool stored = false;
  for (auto& [program, entry] : entries_) {
    if (entry.saved) continue;
    try {
      // First the folder: asked for a binary, PoCL compiles every kernel of the program once more, for any work-group.
      std::string why = cache_.prepare();
      if (why.empty()) why = cache_.store(cache_key(entry.source), api_.binary_of(entry.program.get()));
      if (!why.empty()) cache_note_ = str("built programs are not kept for the next start: ", why);
      if (!why.empty()) return;  // the others would fail alike
    } catch (const Error& failure) {
      cache_note_ = str("built programs are not kept for the next start: ", failure.what());
      return;
    }
    entry.saved = true;
    stored = true;
  }
  if (stored) cache_.trim(kMostBytes);
}

}  // namespace stoker::opencl
