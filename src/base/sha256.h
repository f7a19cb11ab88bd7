// SHA-256 (FIPS 180-4): names and checks entries of caches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

using Sha256 = std::array<std::byte, 32>;

[[nodiscard]] Sha256 sha256(std::span<const std::byte> bytes);
[[nodiscard]] Sha256 sha256(std::string_view text);
[[nodiscard]] std::string hex(const Sha256& hash);

}  // namespace stoker
