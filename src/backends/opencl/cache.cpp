#include "backends/opencl/cache.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"

namespace stoker::opencl {
namespace {

// An entry: these words, the key's hash, the content's hash, the content.
constexpr std::string_view kMagic = "stoker cache 1\n";
constexpr std::size_t kHash = std::tuple_size_v<Sha256>;
constexpr std::size_t kHeader = kMagic.size() + 2 * kHash;

std::filesystem::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::filesystem::path(value) : std::filesystem::path();
}

}  // namespace

std::filesystem::path cache_folder() {
  if (std::filesystem::path folder = from_environment("STOKER_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::filesystem::path xdg = from_environment("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "stoker";
  if (const std::filesystem::path home = from_environment("HOME"); !home.empty()) return home / ".cache" / "stoker";
  return {};
}

Cache::Cache(std::string_view below) : folder_(cache_folder()) {
  if (!folder_.empty()) folder_ /= below;
}

std::filesystem::path Cache::path_of(std::string_view key) const { return folder_ / (hex(sha256(key)) + ".bin"); }

std::optional<std::vector<std::byte>> Cache::load(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::vector<std::byte> file;
  try {
    file = read_file(path_of(key));
  } catch (const Error&) {
    return std::nullopt;  // mostly: there is none yet
  }
  if (file.size() < kHeader) return std::nullopt;
  const std::span<const std::byte> all(file);
  const std::span<const std::byte> content = all.subspan(kHeader);
  const auto magic = std::as_bytes(std::span(kMagic));
  const bool good = std::ranges::equal(all.first(kMagic.size()), magic) &&
                    std::ranges::equal(all.subspan(kMagic.size(), kHash), sha256(key)) &&
                    std::ranges::equal(all.subspan(kMagic.size() + kHash, kHash), sha256(content));
  if (!good) return std::nullopt;
  // The time of its last use, for trim(). Where it cannot be set, the folder cannot be written to either.
  std::error_code ignored;
  std::filesystem::last_write_time(path_of(key), std::filesystem::file_time_type::clock::now(), ignored);
  return std::vector<std::byte>(content.begin(), content.end());
}

std::string Cache::prepare() const {
  if (folder_.empty()) return "there is no cache folder: none of STOKER_CACHE_DIR, XDG_CACHE_HOME and HOME is set";
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  return error ? str("cannot create ", folder_.string(), ": ", error.message()) : std::string();
}

std::string Cache::store(std::string_view key, std::span<const std::byte> bytes) const {
  if (std::string why = prepare(); !why.empty()) return why;
  try {
    const auto content = [&](const WritePart& write) {
      write(std::as_bytes(std::span(kMagic)));
      write(sha256(key));
      write(sha256(bytes));
      write(bytes);
    };
    write_file_atomically(path_of(key), content, false);
  } catch (const Error& failure) {
    return failure.what();
  }
  return {};
}

void Cache::trim(std::uintmax_t bytes) const {
  struct File {
    std::filesystem::file_time_type used;
    std::uintmax_t bytes = 0;
    std::filesystem::path path;
  };
  std::vector<File> files;
  std::uintmax_t total = 0;
  std::error_code error;
  // Of what vanishes meanwhile, or cannot be asked, nothing is known and nothing is removed.
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    File file{.used = at->last_write_time(unknown), .path = at->path()};
    if (!unknown) file.bytes = at->file_size(unknown);
    if (unknown) continue;
    total += file.bytes;
    files.push_back(std::move(file));
  }
  if (total <= bytes) return;
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (total <= bytes) return;
    std::filesystem::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace stoker::opencl
