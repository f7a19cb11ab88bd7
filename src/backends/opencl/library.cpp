#include "backends/opencl/library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"

namespace stoker::opencl {
namespace {

// A function by its name. Google's Pixel (and car) libraries export two functions of their own instead of OpenCL's.
class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {
    const auto enable = reinterpret_cast<void (*)()>(::dlsym(handle, "enableOpenCL"));
    const auto load = reinterpret_cast<void* (*)(const char*)>(::dlsym(handle, "loadOpenCLPointer"));
    if (enable == nullptr || load == nullptr) return;
    enable();
    load_ = load;
  }
  [[nodiscard]] void* operator()(const char* name) const {
    return load_ != nullptr ? load_(name) : ::dlsym(handle_, name);
  }

 private:
  void* handle_;
  void* (*load_)(const char*) = nullptr;
};

// The name of the first function that is missing; null if all are there.
const char* fill(Functions& functions, const Symbols& symbols) {
#define CORE(name)                                                      \
  functions.name = reinterpret_cast<decltype(&::name)>(symbols(#name)); \
  if (functions.name == nullptr) return #name;
#define EXTENSION(name, type)
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
  return nullptr;
}

class LoadedLibrary final : public Library {
 public:
  LoadedLibrary(const Functions& functions, const Symbols& symbols) : functions_(functions), symbols_(symbols) {}
  [[nodiscard]] const Functions& functions() const override { return functions_; }
  // Some Adreno drivers export an extension's functions, and yet do not give them to whom asks the platform.
  [[nodiscard]] Functions functions_of(cl_platform_id platform) const override {
    Functions all = Library::functions_of(platform);
#define CORE(name)
#define EXTENSION(name, type) \
  if (all.name == nullptr) all.name = reinterpret_cast<type>(symbols_(#name));
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
    return all;
  }

 private:
  Functions functions_;
  Symbols symbols_;
};

struct Loaded {
  LoadReport report;
  LoadReport for_tests;  // used if it has a library
};

Loaded& loaded() {
  static Loaded state{.report = try_libraries(library_names())};
  return state;
}

}  // namespace

Functions Library::functions_of(cl_platform_id platform) const {
  Functions all = functions();
#define CORE(name)
#define EXTENSION(name, type) \
  all.name = reinterpret_cast<type>(all.clGetExtensionFunctionAddressForPlatform(platform, #name));
#include "backends/opencl/functions.inc"
#undef CORE
#undef EXTENSION
  return all;
}

std::vector<std::string> library_names() {
  if (const char* chosen = std::getenv("STOKER_OPENCL_LIBRARY"); chosen != nullptr && *chosen != '\0') return {chosen};
  // Bare names first: since Android 12 an app reaches a vendor's library only by the name that its manifest declares.
  const std::vector<std::string> names = {"libOpenCL.so",       "libOpenCL.so.1",   "libGLES_mali.so", "libmali.so",
                                          "libOpenCL-pixel.so", "libOpenCL-car.so", "libPVROCL.so"};
  const char* lib = sizeof(void*) == 8 ? "lib64" : "lib";
  std::vector<std::string> all = names;
  for (const char* folder : {"/system/vendor/", "/vendor/"})
    for (const char* below : {"/", "/egl/"})
      for (const std::string& name : names) all.push_back(str(folder, lib, below, name));
  return all;
}

LoadReport try_libraries(std::span<const std::string> names) {
  LoadReport report;
  for (const std::string& name : names) {
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = ::dlerror();
      report.tried.push_back(str(name, ": ", why != nullptr ? why : "cannot be opened"));
      continue;
    }
    Functions functions;
    const Symbols symbols(handle);
    if (const char* missing = fill(functions, symbols); missing != nullptr) {
      report.tried.push_back(str(name, ": has no ", missing));
      ::dlclose(handle);
      continue;
    }
    // Never closed: drivers leave threads and exit handlers behind.
    report.library = std::make_shared<LoadedLibrary>(functions, symbols);
    report.path = name;
    break;
  }
  return report;
}

const LoadReport& load_library() {
  const Loaded& state = loaded();
  return state.for_tests.library != nullptr ? state.for_tests : state.report;
}

void set_library_for_tests(std::shared_ptr<const Library> library) {
  loaded().for_tests = {.library = std::move(library), .path = "a test's", .tried = {}};
}

}  // namespace stoker::opencl
