#include "backends/opencl/opencl_backend.h"

#include "backends/opencl/ceilings.h"
#include "backends/opencl/devices.h"
#include "backends/opencl/executable.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/mnn_shapes.h"
#include "backends/opencl/self_test.h"
#include "backends/opencl/target.h"
#include "backends/opencl/tuner.h"
#include "base/error.h"

namespace stoker {
namespace opencl {
namespace {

DeviceMemory& on_device(Memory& memory) { return dynamic_cast<DeviceMemory&>(memory); }

class DeviceBackend : public ClBackend {
 public:
  DeviceBackend(const LoadReport& loaded, OpenedDevice opened, const BackendOptions& options)
      : options_(options),
        api_(loaded.library),
        id_(opened.id),
        device_(std::move(opened.info)),
        context_(api_.create_context(id_)),
        queue_(api_.create_queue(context_.get(), id_, options.recorder != nullptr)),
        programs_(api_, context_.get(), id_, device_, queue_.get()),
        tuning_(device_),
        target_(device_, tuning_, options.largest_buffer) {
    if (options_.recorder != nullptr) api_.record_to(*options_.recorder);
    programs_.set_interrupt(options_.interrupt);
    if (device_.image_texels > 0 && !makes_views()) device_.image_texels = 0;
  }

  [[nodiscard]] DeviceInfo describe() const override { return opencl::describe(device_); }
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] const Device& device() const override { return device_; }
  [[nodiscard]] Tuning& tuning() override { return tuning_; }
  [[nodiscard]] std::string numerics_key() const override { return str(device_.key(), " ", tuning_.key()); }
  // The host fills one batch while the device works on the other.
  [[nodiscard]] int batch_slots() const override { return 2; }
  [[nodiscard]] Counters counters() const override { return api_.counters(); }

  [[nodiscard]] std::unique_ptr<Memory> allocate(std::int64_t bytes, MemoryKind kind) override {
    return std::make_unique<DeviceMemory>(api_, context_.get(), queue_.get(), bytes, kind, target_.largest_buffer());
  }

  void upload(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) override {
    on_device(memory).upload(offset, bytes, true);
  }

  void upload_async(Memory& memory, std::int64_t offset, std::span<const std::byte> bytes) override {
    on_device(memory).upload(offset, bytes, false);
  }

  void copy(const Memory& from, std::int64_t from_offset, Memory& to, std::int64_t to_offset,
            std::int64_t bytes) override {
    dynamic_cast<const DeviceMemory&>(from).copy_to(from_offset, on_device(to), to_offset, bytes);
  }

  void download(const Memory& memory, std::int64_t offset, std::span<std::byte> bytes) override {
    dynamic_cast<const DeviceMemory&>(memory).download(offset, bytes);
  }

  [[nodiscard]] std::span<std::byte> map(Memory& batch) override { return on_device(batch).map(); }
  void unmap(Memory& batch) override { on_device(batch).unmap(); }

  [[nodiscard]] std::unique_ptr<Executable> compile(const Plan& plan, const Bindings& bindings) override {
    std::unique_ptr<Executable> executable = make_executable({.api = api_,
                                                              .id = id_,
                                                              .context = context_.get(),
                                                              .queue = queue_.get(),
                                                              .device = device_,
                                                              .tuning = tuning_,
                                                              .programs = programs_,
                                                              .replay = options_.replay && options_.recorder == nullptr,
                                                              .merge = options_.merge,
                                                              .recorder = options_.recorder,
                                                              .interrupt = options_.interrupt,
                                                              .piece_bytes = target_.largest_buffer()},
                                                             plan, bindings);
    if (options_.note && !told_of_cache_ && !programs_.cache_note().empty()) {
      told_of_cache_ = true;
      options_.note(programs_.cache_note());
    }
    return executable;
  }

  [[nodiscard]] Ceilings measure_ceilings() override {
    return opencl::measure_ceilings(api_, context_.get(), queue_.get(), programs_, device_);
  }

 private:
  // Kernels read views of parts of buffers. Some drivers have images and refuse that (PoCL 3.1): better seen here.
  [[nodiscard]] bool makes_views() {
    const std::int64_t bytes = device_.base_alignment;
    const Handle<cl_mem> buffer = api_.create_buffer(context_.get(), CL_MEM_READ_WRITE, 2 * bytes);
    const Handle<cl_mem> part = api_.create_sub_buffer(buffer.get(), bytes, bytes);
    try {
      const Handle<cl_mem> view = api_.create_image_view(context_.get(), part.get(), bytes);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  BackendOptions options_;
  Api api_;
  cl_device_id id_;
  Device device_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
  Programs programs_;
  Tuning tuning_;
  ClTarget target_;
  bool told_of_cache_ = false;
};

}  // namespace

std::unique_ptr<ClBackend> make_seeded_backend(std::string_view device, const BackendOptions& options) {
  const LoadReport& loaded = load_library();
  return std::make_unique<DeviceBackend>(loaded, open_device(loaded, device), options);
}

}  // namespace opencl

std::unique_ptr<Backend> make_opencl_backend(std::string_view device, const BackendOptions& options) {
  std::unique_ptr<opencl::ClBackend> backend = opencl::make_seeded_backend(device, options);
  for (const std::string& family : backend->device().quirks.families) backend->tuning().quarantine(family);
  if (options.kernels == KernelChoice::mnn) {
    opencl::set_mnn_shapes(backend->device(), backend->tuning());
    return backend;
  }
  if (options.tuned) opencl::load_tuning(backend->device(), backend->tuning());
  opencl::apply_self_test(
      *backend, options.self_test, [&] { return opencl::make_seeded_backend(device, options); }, options.note);
  return backend;
}

}  // namespace stoker
