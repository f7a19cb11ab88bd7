// A library like those of Google's phones: no OpenCL function is exported; they come from loadOpenCLPointer, and only
// after enableOpenCL.
namespace {

bool enabled = false;
int function() { return -1; }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void enableOpenCL() { enabled = true; }
__attribute__((visibility("default"))) void* loadOpenCLPointer(const char* /*name*/) {
  return enabled ? reinterpret_cast<void*>(&function) : nullptr;
}
}
