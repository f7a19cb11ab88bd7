// A layer under the Api that counts the calls of each OpenCL entry point, and makes chosen ones fail.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>

#include "backends/opencl/library.h"

namespace stoker::testing {

// Which call fails: the `call`-th (from 0) of `function`, and every later one if `for_good`.
struct Fault {
  std::string function;
  long call = 0;
  cl_int error = CL_OUT_OF_HOST_MEMORY;
  bool for_good = false;
};

struct FaultState {
  Fault fault;                        // none if `function` is empty
  std::map<std::string, long> calls;  // so far
  bool fired = false;
  bool fired_at_work = false;  // before `at_work` was cleared
  bool at_work = true;         // what is tested has not come to its end; then objects are given back, and no more
};

inline FaultState& faults() {
  static FaultState state;
  return state;
}

// One wrapper for each function of the table; `Tag` tells functions of one type apart.
template <typename Tag, typename F>
struct Faulty;

template <typename Tag, typename Result, typename... Args>
struct Faulty<Tag, Result(CL_API_CALL*)(Args...)> {
  using Pointer = Result(CL_API_CALL*)(Args...);
  static inline Pointer below = nullptr;
  static inline const char* name = nullptr;

  static Result CL_API_CALL call(Args... args) {
    FaultState& state = faults();
    const long number = state.calls[name]++;
    const Fault& fault = state.fault;
    const bool fails = fault.function == name && (number == fault.call || (fault.for_good && number > fault.call));
    if (!fails) return below(args...);
    state.fired = true;
    state.fired_at_work |= state.at_work;
    if constexpr (std::is_same_v<Result, cl_int>) {
      // An object is released whatever the call says: a leak there would be the driver's.
      if (std::string(name).starts_with("clRelease")) static_cast<void>(below(args...));
      return fault.error;
    } else {
      // Functions that make something report in their last argument, if at all.
      (
          [&](auto arg) {
            if constexpr (std::is_same_v<decltype(arg), cl_int*>) *arg = fault.error;
          }(args),
          ...);
      return nullptr;
    }
  }
  static Pointer wrap(Pointer function, const char* function_name) {
    below = function;
    name = function_name;
    return function != nullptr ? &call : nullptr;
  }
};

class FaultLibrary final : public opencl::Library {
 public:
  explicit FaultLibrary(std::shared_ptr<const opencl::Library> below)
      : below_(std::move(below)), functions_(wrapped(below_->functions())) {}
  [[nodiscard]] const opencl::Functions& functions() const override { return functions_; }
  [[nodiscard]] opencl::Functions functions_of(cl_platform_id platform) const override {
    return wrapped(below_->functions_of(platform));
  }

 private:
  static opencl::Functions wrapped(const opencl::Functions& from) {
    opencl::Functions to;
#define CORE(function)   \
  struct Tag_##function; \
  to.function = Faulty<Tag_##function, decltype(to.function)>::wrap(from.function, #function);
#define EXTENSION(function, type) CORE(function)
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
    return to;
  }
  std::shared_ptr<const opencl::Library> below_;
  opencl::Functions functions_;
};

}  // namespace stoker::testing
