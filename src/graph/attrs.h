// Attrs: an op's fixed settings by name (stride, axes, ...), kept sorted so that equal settings compare equal.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stoker {

using Ints = std::vector<std::int64_t>;
using Attr = std::variant<std::int64_t, double, std::string, Ints, std::vector<float>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> entries);

  void set(std::string name, Attr value);
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  // Each throws an Error that names the attribute if it is absent or of another type.
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] const Ints& ints(std::string_view name) const;
  [[nodiscard]] const std::vector<float>& floats(std::string_view name) const;

  [[nodiscard]] const std::vector<std::pair<std::string, Attr>>& entries() const { return entries_; }
  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  [[nodiscard]] const Attr* find(std::string_view name) const;
  template <typename T>
  [[nodiscard]] const T& get(std::string_view name) const;

  std::vector<std::pair<std::string, Attr>> entries_;
};

[[nodiscard]] std::string to_string(const Attrs& attrs);

}  // namespace stoker
