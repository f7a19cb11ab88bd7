// Preloaded with Mesa's fake kernel drivers, which leave two answers out that OpenCL needs once something was submitted:
// Adreno's count of GPU faults (else what lies on the stack, and rusticl takes the device for lost) and Mali's fence as a
// file (else none, and rusticl crashes waiting for it). Nothing is executed, so everything is always done and no fault.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

// From the kernel's drm/msm_drm.h.
enum { kMsmSubmitqueueQuery = 0x0C };
struct SubmitqueueQuery {
  uint64_t data;  // where the answer goes
  uint32_t id;
  uint32_t param;
  uint32_t len;
  uint32_t pad;
};

int drmCommandWriteRead(int fd, unsigned long command, void* data, unsigned long size) {
  static int (*real)(int, unsigned long, void*, unsigned long);
  if (command == kMsmSubmitqueueQuery && size == sizeof(struct SubmitqueueQuery)) {
    const struct SubmitqueueQuery* query = data;
    memset((void*)(uintptr_t)query->data, 0, query->len);
    return 0;
  }
  if (!real) {  // not RTLD_NEXT: the loader opens drivers, and so libdrm, for themselves alone
    void* libdrm = dlopen("libdrm.so.2", RTLD_LAZY | RTLD_NOLOAD);
    real = (int (*)(int, unsigned long, void*, unsigned long))dlsym(libdrm, "drmCommandWriteRead");
  }
  return real(fd, command, data, size);
}

int drmSyncobjExportSyncFile(int fd, uint32_t handle, int* file) {
  (void)fd;
  (void)handle;
  *file = open("/dev/null", O_RDWR | O_CLOEXEC);
  return *file < 0 ? -1 : 0;
}
