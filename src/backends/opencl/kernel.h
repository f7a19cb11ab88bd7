// What a kernel family gives the backend: for each node a list of launches and stages, as plain data. Nothing here
// calls OpenCL: the executable resolves programs, places and arguments once, in compile().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/opencl/device.h"
#include "base/round.h"
#include "graph/graph.h"
#include "ops/cost.h"
#include "plan/plan.h"

namespace stoker::opencl {

class Tuning;

// A file of kernels/ specialised. The source built is: header, one #define a row, the file. Equal programs are built
// once. Only tiles, expressions and divisibility belong here; sizes are kernel arguments, so that a net needs tens of
// programs, not hundreds.
struct Program {
  std::string file;    // "gemm" is kernels/gemm.cl
  std::string header;  // rendered expressions (render.h)
  std::vector<std::pair<std::string, int>> defines;

  friend auto operator<=>(const Program&, const Program&) = default;
};

// Integers for a launch that the executable uploads once, in compile().
struct Table {
  // A word that holds where a tensor begins in its buffer, in elements.
  struct Patch {
    int word = 0;
    Place place;
    int element_bytes = 4;
  };
  std::vector<std::int32_t> words;
  std::vector<Patch> patches;
};

// An argument of a launch. A tensor is two parameters: `global T* x, int x_at`, the offset in elements of T. `T`
// follows from the kernel; buffers are bytes to OpenCL.
struct Arg {
  enum class Kind : std::uint8_t {
    tensor,   // a buffer, and the offset in elements of `element_bytes`
    image,    // image1d_buffer_t of float4 texels that begins at the place; see Device::image_texels
    integer,  // int
    real,     // float
    local,    // bytes of local memory
    buffer,   // `global uchar* b`: the whole buffer that the place lies in, without an offset
    table,    // `global const int* t, int t_at`: Table
  };
  Kind kind = Kind::integer;
  Place place;
  int element_bytes = 4;
  std::int64_t number = 0;  // the integer, or local bytes
  float value = 0.0F;
  std::shared_ptr<const Table> words;  // of a table

  [[nodiscard]] static Arg tensor(const Place& place, int element_bytes = 4) {
    return {.kind = Kind::tensor, .place = place, .element_bytes = element_bytes};
  }
  [[nodiscard]] static Arg image(const Place& place) { return {.kind = Kind::image, .place = place}; }
  [[nodiscard]] static Arg integer(std::int64_t number) { return {.kind = Kind::integer, .number = number}; }
  [[nodiscard]] static Arg real(float value) { return {.kind = Kind::real, .value = value}; }
  [[nodiscard]] static Arg local(std::int64_t bytes) { return {.kind = Kind::local, .number = bytes}; }
  [[nodiscard]] static Arg buffer(const Place& place) { return {.kind = Kind::buffer, .place = place}; }
  [[nodiscard]] static Arg table(Table table) {
    return {.kind = Kind::table, .words = std::make_shared<const Table>(std::move(table))};
  }
};

// One kernel launch. `global` is in work-items and a multiple of `local`: kernels guard their edges.
struct Launch {
  Program program;
  std::string kernel;
  std::vector<Arg> args;
  std::array<std::size_t, 3> global{1, 1, 1};
  std::array<std::size_t, 3> local{1, 1, 1};
  Cost cost;
};

// A small piece of work. Neighbouring stages are merged into one launch (stages.h), which spares the 25-300 us that a
// launch costs on a phone. `code` is the body of a function; it finds its arguments with F32(k), I32(k), U8(k),
// F16(k), U16(k), I64(k)
// (pointers to tensor number k of `args`), INT(k), REAL(k), best read into variables before a loop, and shares its work
// with `FOR_ITEMS(i, n) { ... }` (each work-item takes every ITEMS-th i of 0..n-1 on GPUs, a run of them on CPUs) or
// with `for (int i = ITEM; i < n; i += ITEMS)`. Equal code is compiled once.
struct Stage {
  std::string code;
  std::string header;         // functions that the code calls (render.h)
  std::vector<Arg> args;      // tensor, integer, real
  std::vector<bool> written;  // one for each of args: a tensor that the stage writes
  std::int64_t items = 1;     // how many work-items have something to do
  bool one_group = false;     // needs SYNC() and SCRATCH (local floats, one a work-item): run by one work-group
  Cost cost;
};

using Work = std::variant<Launch, Stage>;

// What a node's kernel is prepared with.
struct KernelContext {
  const Graph& graph;
  const Node& node;
  std::vector<Place> inputs;   // one for each of node.inputs
  std::vector<Place> outputs;  // one for each of node.outputs
  Place scratch;               // workspace() bytes
  const Device& device;
  const Tuning& tuning;

  [[nodiscard]] const Spec& input_spec(int i) const { return graph.spec(node.inputs[static_cast<std::size_t>(i)]); }
  [[nodiscard]] const Spec& output_spec(int i) const { return node.outputs[static_cast<std::size_t>(i)]; }
};

// `bytes` of `place` from `offset` on: a part of a workspace.
[[nodiscard]] Place part(const Place& place, std::int64_t offset, std::int64_t bytes);

// What a Target answers about a node, and its preparation. Work is cut by shape and tuning only (determinism).
struct KernelDef {
  const char* op;
  std::vector<Work> (*prepare)(const KernelContext& context);
  std::int64_t (*workspace)(const KernelContext& context) = nullptr;  // without places; null: none
  int (*prologue_tensors)(const Graph& graph, const Node& node, int operand,
                          const Device& device) = nullptr;                                       // null: 0
  bool (*takes_epilogue)(const Graph& graph, const Node& node, const Device& device) = nullptr;  // null: no
  bool (*supports)(const Graph& graph, const Node& node, const Device& device) = nullptr;        // null: always
};

// One for each family, in kernels/.
std::span<const KernelDef> pointwise_kernels();
std::span<const KernelDef> reduction_kernels();
std::span<const KernelDef> matmul_kernels();
std::span<const KernelDef> conv2d_kernels();
std::span<const KernelDef> depthwise_kernels();
std::span<const KernelDef> pooling_kernels();
std::span<const KernelDef> softmax_kernels();
std::span<const KernelDef> gather_kernels();
std::span<const KernelDef> movement_kernels();

}  // namespace stoker::opencl
