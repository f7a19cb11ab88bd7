// CLBlast's sgemm on the OpenCL device that `stoker devices` calls by the same name, with buffers of its own.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/devices.h"
#include "backends/opencl/library.h"  // says which OpenCL, before CLBlast's header does
// clang-format off
#include <clblast_c.h>
// clang-format on

#include "base/error.h"

namespace stoker {

class ClblastProduct {
 public:
  ClblastProduct(const std::string& id, std::int64_t m, std::int64_t n, std::int64_t k, bool tx, bool ty)
      : m_(at(m)), n_(at(n)), k_(at(k)), tx_(tx), ty_(ty) {
    cl_device_id device = opencl::open_device(opencl::load_library(), id).id;
    context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue_ = clCreateCommandQueueWithProperties(context_, device, nullptr, nullptr);
    std::size_t i = 0;
    for (const std::size_t elements : {m_ * k_, k_ * n_, m_ * n_}) {
      std::vector<float> values(elements, 0.25F);
      buffers_[i++] = clCreateBuffer(context_, CL_MEM_COPY_HOST_PTR, elements * sizeof(float), values.data(), nullptr);
    }
  }
  ClblastProduct(const ClblastProduct&) = delete;
  ClblastProduct& operator=(const ClblastProduct&) = delete;
  ~ClblastProduct() {
    for (cl_mem buffer : buffers_) clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue_);
    clReleaseContext(context_);
  }

  void run(int times) {
    for (int i = 0; i < times; ++i) {
      const CLBlastStatusCode status =
          CLBlastSgemm(CLBlastLayoutRowMajor, tx_ ? CLBlastTransposeYes : CLBlastTransposeNo,
                       ty_ ? CLBlastTransposeYes : CLBlastTransposeNo, m_, n_, k_, 1.0F, buffers_[0], 0, tx_ ? m_ : k_,
                       buffers_[1], 0, ty_ ? k_ : n_, 0.0F, buffers_[2], 0, n_, &queue_, nullptr);
      require(status == CLBlastSuccess, Code::device, "CLBlast: status ", static_cast<int>(status));
    }
    clFinish(queue_);
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::size_t m_, n_, k_;
  bool tx_, ty_;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_mem buffers_[3] = {nullptr, nullptr, nullptr};
};

}  // namespace stoker
