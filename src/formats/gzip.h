// gzip streams, one member or several. Works on untrusted bytes: the result never grows past `most` bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace stoker {

constexpr std::size_t kMostInflatedBytes = std::size_t{1} << 31;

[[nodiscard]] bool is_gzip(std::span<const std::byte> bytes);

// Errors (Code::bad_file) name `file`.
[[nodiscard]] std::vector<std::byte> inflate_gzip(std::span<const std::byte> bytes, std::string_view file,
                                                  std::size_t most = kMostInflatedBytes);

// A file's bytes, inflated if they are gzip, whatever the file is called.
[[nodiscard]] std::vector<std::byte> read_file_inflated(const std::filesystem::path& path);

}  // namespace stoker
