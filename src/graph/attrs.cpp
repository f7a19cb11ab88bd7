#include "graph/attrs.h"

#include <algorithm>

#include "base/error.h"

namespace stoker {

Attrs::Attrs(std::initializer_list<std::pair<std::string, Attr>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Attrs::set(std::string name, Attr value) {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &std::pair<std::string, Attr>::first);
  if (at != entries_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    entries_.emplace(at, std::move(name), std::move(value));
  }
}

const Attr* Attrs::find(std::string_view name) const {
  const auto at = std::ranges::find(entries_, name, &std::pair<std::string, Attr>::first);
  return at == entries_.end() ? nullptr : &at->second;
}

template <typename T>
const T& Attrs::get(std::string_view name) const {
  const Attr* attr = find(name);
  require(attr != nullptr, Code::bad_argument, "attribute ", name, " is missing");
  const T* value = std::get_if<T>(attr);
  require(value != nullptr, Code::bad_argument, "attribute ", name, " has the wrong type");
  return *value;
}

std::int64_t Attrs::integer(std::string_view name) const { return get<std::int64_t>(name); }
double Attrs::real(std::string_view name) const { return get<double>(name); }
const std::string& Attrs::text(std::string_view name) const { return get<std::string>(name); }
const Ints& Attrs::ints(std::string_view name) const { return get<Ints>(name); }
const std::vector<float>& Attrs::floats(std::string_view name) const { return get<std::vector<float>>(name); }

namespace {

template <typename T>
std::string list(const std::vector<T>& values) {
  constexpr std::size_t kShown = 8;
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(values.size(), kShown); ++i) text += (i ? "," : "") + str(values[i]);
  return text + (values.size() > kShown ? str(",.. ", values.size(), "]") : "]");
}

}  // namespace

std::string to_string(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs.entries()) {
    text += (text.empty() ? "" : " ") + name + "=";
    if (const auto* ints = std::get_if<Ints>(&value)) {
      text += list(*ints);
    } else if (const auto* floats = std::get_if<std::vector<float>>(&value)) {
      text += list(*floats);
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      text += std::to_string(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      text += str(*real);
    } else {
      text += std::get<std::string>(value);
    }
  }
  return text;
}

}  // namespace stoker
