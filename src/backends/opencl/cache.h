// Cache: small files that may vanish at any time: built programs, tuning results, reports of self-tests. An entry that
// is damaged, foreign or truncated is as good as absent. Folder: $STOKER_CACHE_DIR, else $XDG_CACHE_HOME/stoker, else
// $HOME/.cache/stoker, else none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::opencl {

// Empty: there is none, and nothing is cached.
[[nodiscard]] std::filesystem::path cache_folder();

class Cache {
 public:
  // `below`: the folder's part for one kind of entry, as in "programs".
  explicit Cache(std::string_view below);

  // `key`: any text that tells entries apart; it is stored too, hashed, and checked.
  [[nodiscard]] std::optional<std::vector<std::byte>> load(std::string_view key) const;
  // Creates the folder. Empty if there is one, otherwise why nothing can be stored.
  [[nodiscard]] std::string prepare() const;
  // Empty if it was stored, otherwise why not; a full disk or a read-only folder is no Error.
  [[nodiscard]] std::string store(std::string_view key, std::span<const std::byte> bytes) const;
  // Removes the entries that were not stored or loaded for the longest time until the rest fits into `bytes`.
  void trim(std::uintmax_t bytes) const;
  // Where the entry stands, or would.
  [[nodiscard]] std::filesystem::path path_of(std::string_view key) const;

 private:
  std::filesystem::path folder_;  // empty: no cache
};

}  // namespace stoker::opencl
