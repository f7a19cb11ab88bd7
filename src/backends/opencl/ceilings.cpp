#include "backends/opencl/ceilings.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fastest.h"

namespace stoker::opencl {
namespace {

constexpr std::size_t kGroup = 64;
constexpr Repeats kRepeats{.least = 4, .seconds = 0.12};
constexpr double kShortest = 0.002;  // seconds of a run; and so many times what starting it takes:
constexpr double kStarts = 50;
constexpr int kMostRounds = 1 << 16;    // of a device whose runs seem to take no time
constexpr std::int64_t kSmall = 64;     // bytes
constexpr std::int64_t kMapped = 4096;  // bytes of a small batch

struct Variant {
  int width;
  int chains;
  std::size_t group;
};

// Wide vectors and groups of one are for CPUs, whose compilers make registers of them; GPUs are scalar, or of width 4.
constexpr Variant kFlopVariants[] = {{1, 8, kGroup}, {4, 4, kGroup}, {4, 8, kGroup}, {8, 12, 1}, {16, 12, 1}};

struct StreamVariant {
  int width;
  bool runs;
  const char* kernel;
  int arrays;  // read or written
};
constexpr StreamVariant kStreamVariants[] = {{4, false, "ceilings_copy", 2},
                                             {4, false, "ceilings_triad", 3},
                                             {8, true, "ceilings_copy", 2},
                                             {8, true, "ceilings_triad", 3}};

class Bench {
 public:
  Bench(Api& api, cl_context context, cl_command_queue queue, Programs& programs, const Device& device)
      : api_(api), context_(context), queue_(queue), programs_(programs), device_(device) {}

  [[nodiscard]] Ceilings measure() {
    Ceilings result;
    measure_latencies(result);
    if (!executes()) return result;
    const double start = result.launch_seconds + result.sync_seconds;
    for (const Variant& variant : kFlopVariants)
      result.flops = std::max(result.flops, flops(variant, std::max(kShortest, kStarts * start)));
    measure_bandwidths(result);
    programs_.save();
    return result;
  }

 private:
  [[nodiscard]] Handle<cl_kernel> kernel(const char* name, std::vector<std::pair<std::string, int>> defines) {
    return programs_.kernel({.file = "ceilings", .header = {}, .defines = std::move(defines)}, name);
  }

  [[nodiscard]] Handle<cl_mem> buffer(std::int64_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    Handle<cl_mem> made = api_.create_buffer(context_, flags, bytes);
    api_.fill_zero(queue_, made.get(), bytes);
    return made;
  }

  void set_args(cl_kernel kernel, int number, std::initializer_list<cl_mem> buffers) {
    const cl_int value = number;
    api_.set_arg(kernel, 0, sizeof value, &value);
    int index = 1;
    for (const cl_mem memory : buffers) api_.set_arg(kernel, index++, sizeof(cl_mem), &memory);
  }

  void enqueue(cl_kernel kernel, std::size_t items, std::size_t group) {
    api_.enqueue_kernel(queue_, kernel, {items, 1, 1}, {group, 1, 1});
  }

  // Enough of them to fill any GPU, and few enough for each to have many rounds.
  [[nodiscard]] std::size_t work_items() const {
    const auto units = static_cast<std::size_t>(std::max(1, device_.compute_units));
    return device_.is_cpu() ? units * kGroup : std::min<std::size_t>(units * 256 * kGroup, 1 << 18);
  }

  [[nodiscard]] std::size_t fitting(std::size_t group) const { return std::min(group, device_.max_group); }

  [[nodiscard]] bool executes() {
    const Handle<cl_mem> out = buffer(kSmall);
    const Handle<cl_kernel> nothing = kernel("ceilings_nothing", {});
    set_args(nothing.get(), 1, {out.get()});
    enqueue(nothing.get(), 1, 1);
    float result = 0;
    api_.read(queue_, out.get(), 0, std::as_writable_bytes(std::span(&result, 1)), true);
    return result == 1.0F;
  }

  // Flops a second, of runs of at least so many seconds.
  [[nodiscard]] double flops(const Variant& variant, double long_enough) {
    const std::size_t items = work_items();
    const Handle<cl_mem> out = buffer(static_cast<std::int64_t>(items * sizeof(float)));
    const Handle<cl_kernel> chains = kernel("ceilings_flops", {{"WIDTH", variant.width}, {"CHAINS", variant.chains}});
    int rounds = 32;
    const auto run = [&] {
      set_args(chains.get(), rounds, {out.get()});
      enqueue(chains.get(), items, fitting(variant.group));
      api_.finish(queue_);
    };
    run();  // some drivers compile now
    while (rounds < kMostRounds && fastest_seconds({.least = 1, .seconds = 0}, run) < long_enough) rounds *= 2;
    const double each = 2.0 * variant.width * variant.chains * rounds;
    return per_second(each * static_cast<double>(items), fastest_seconds(kRepeats, run));
  }

  // Larger than caches, where the device has the memory.
  [[nodiscard]] std::int64_t stream_bytes() const {
    const std::int64_t most =
        std::min({device_.global_bytes / 128, device_.largest_buffer / 2, std::int64_t{128} << 20});
    return std::max<std::int64_t>(most, 1 << 20) / (1 << 20) * (1 << 20);
  }

  void measure_bandwidths(Ceilings& result) {
    const std::int64_t bytes = stream_bytes();
    const std::array<Handle<cl_mem>, 3> arrays{buffer(bytes), buffer(bytes), buffer(bytes)};
    for (const StreamVariant& variant : kStreamVariants) {
      const Handle<cl_kernel> stream =
          kernel(variant.kernel, {{"WIDTH", variant.width}, {"RUNS", variant.runs ? 1 : 0}});
      const auto vectors = static_cast<int>(bytes / (variant.width * static_cast<std::int64_t>(sizeof(float))));
      set_args(stream.get(), vectors, {arrays[0].get(), arrays[1].get(), arrays[2].get()});
      // A megabyte's multiple is cut evenly by a power of two.
      const std::size_t items = variant.runs ? 1 << 8 : 1 << 15;
      const double seconds = fastest_seconds(kRepeats, [&] {
        enqueue(stream.get(), items, variant.runs ? 1 : fitting(kGroup));
        api_.finish(queue_);
      });
      result.bandwidth = std::max(result.bandwidth, per_second(static_cast<double>(variant.arrays * bytes), seconds));
    }
    std::vector<std::byte> host(static_cast<std::size_t>(bytes / 4));
    const auto amount = static_cast<double>(host.size());
    std::memset(host.data(), 1, host.size());
    result.to_device =
        per_second(amount, fastest_seconds(kRepeats, [&] { api_.write(queue_, arrays[0].get(), 0, host, true); }));
    result.to_host =
        per_second(amount, fastest_seconds(kRepeats, [&] { api_.read(queue_, arrays[0].get(), 0, host, true); }));
  }

  void measure_latencies(Ceilings& result) {
    const Handle<cl_mem> out = buffer(kSmall);
    const Handle<cl_kernel> nothing = kernel("ceilings_nothing", {});
    set_args(nothing.get(), 1, {out.get()});
    const auto queue_of = [&](int launches) {
      return fastest_seconds(kRepeats, [&] {
        for (int i = 0; i < launches; ++i) enqueue(nothing.get(), 1, 1);
        api_.finish(queue_);
      });
    };
    constexpr int kFew = 16;
    constexpr int kMany = 272;
    const double one = queue_of(1);
    result.launch_seconds = std::max(0.0, queue_of(kMany) - queue_of(kFew)) / (kMany - kFew);
    result.sync_seconds = std::max(0.0, one - result.launch_seconds);
    std::array<std::byte, kSmall> host{};
    result.read_seconds = fastest_seconds(kRepeats, [&] { api_.read(queue_, out.get(), 0, host, true); });
    result.write_seconds = fastest_seconds(kRepeats, [&] { api_.write(queue_, out.get(), 0, host, true); });
    const Handle<cl_mem> batch = buffer(kMapped, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
    result.map_seconds = fastest_seconds(kRepeats, [&] {
      Handle<cl_event> mapped;
      std::byte* pointer = api_.map(queue_, batch.get(), kMapped, true, mapped);
      api_.wait(mapped.get(), Wait::blocking);
      api_.unmap(queue_, batch.get(), pointer);
      api_.finish(queue_);
    });
  }

  Api& api_;
  cl_context context_;
  cl_command_queue queue_;
  Programs& programs_;
  const Device& device_;
};

}  // namespace

Ceilings measure_ceilings(Api& api, cl_context context, cl_command_queue queue, Programs& programs,
                          const Device& device) {
  return Bench(api, context, queue, programs, device).measure();
}

}  // namespace stoker::opencl
