// Whole files in and out. Writing is atomic: a reader, or a kill at any moment, sees the old file or the new one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stoker {

[[nodiscard]] std::vector<std::byte> read_file(const std::filesystem::path& path);

// Receives the parts of the new file in order.
using WritePart = std::function<void(std::span<const std::byte>)>;

// An Error (Code::io) if write_file_atomically() could not write there: for those who have much to do before. Leaves no
// file behind.
void require_writable(const std::filesystem::path& path);

// Writes a temporary file beside `path`, syncs it, renames it over `path` and syncs the folder.
// If anything fails the old file stays, the temporary one is removed, and an Error (Code::io) says why.
// A device or a pipe is written to as it is, and where `path` is a link, what it leads to is replaced.
// Without `sync` a loss of power may leave a damaged file: for caches that check what they read.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(const WritePart&)>& content,
                           bool sync = true);

}  // namespace stoker
