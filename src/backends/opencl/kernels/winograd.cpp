// Winograd's F(4x4, 3x3) (winograd.cl): a 3x3 convolution as 36 small products, in all three directions. Tiles go
// through in blocks and result channels in passes, so that the workspace stays small and, on CPUs, in the cache.
#include <algorithm>
#include <array>
#include <iterator>

#include "backends/opencl/kernels/conv2d.h"
#include "backends/opencl/kernels/gemm.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

constexpr std::int64_t kSide = 4;      // of a tile's results
constexpr std::int64_t kSquare = 36;   // elements of a transformed tile
constexpr std::int64_t kGroup = 64;    // work-items of a group on GPUs
constexpr int kSharers = 6;            // of a tile in winograd_shared.cl
constexpr int kSharedVec = 4;          // VEC of winograd_shared.cl
constexpr std::int64_t kDivisor = 16;  // of channels: any vector fits
constexpr std::int64_t kAsked = 2;     // attribute `winograd`: F(4x4) whether it pays or not

enum class Transform : std::uint8_t { source, weights, result, cotangent, filter };  // PART of winograd.cl

// An image and the padding before it.
struct Image {
  std::int64_t h = 0, w = 0, channels = 0;
  std::int64_t pad_h = 0, pad_w = 0;
};

struct Cut {
  ConvPart part = ConvPart::forward;
  Image source;  // x, or dy for the input gradient
  Image result;  // y, dx, or dy for the weight gradient: its tiles are what is cut
  std::int64_t tiles_h = 0, tiles_w = 0, tiles = 0;
  std::int64_t c_in = 0, c_out = 0;
  std::int64_t depth = 0;        // K of the products, but for the weight gradient
  std::int64_t block_tiles = 0;  // at a time
  std::int64_t pass_width = 0;   // result channels at a time
  std::int64_t vec = 1;
  std::int64_t lanes = 0;  // LX of winograd_shared.cl; 0: images are transformed by winograd.cl, too

  [[nodiscard]] std::int64_t width() const { return result.channels; }
};

// Some tiles and some result channels.
struct Piece {
  std::int64_t first = 0, tiles = 0;
  std::int64_t channel0 = 0, channels = 0;
};

Cut geometry(const ConvSizes& s, ConvPart part) {
  const ops::Window& window = s.g.window;
  const Image x{.h = s.g.H, .w = s.g.W, .channels = s.g.C, .pad_h = window.pad[0], .pad_w = window.pad[1]};
  Image y{.h = s.g.OH, .w = s.g.OW, .channels = s.c_out};
  Cut cut{.part = part, .source = x, .result = y, .c_in = s.g.C, .c_out = s.c_out};
  if (part == ConvPart::input_grad) {
    // dx is dy, padded by what is missing to 2, convolved with the kernel turned round.
    y.pad_h = 2 - x.pad_h;
    y.pad_w = 2 - x.pad_w;
    cut.source = y;
    cut.result = x;
  }
  cut.depth = cut.source.channels;
  cut.tiles_h = ceil_div(cut.result.h, kSide);
  cut.tiles_w = ceil_div(cut.result.w, kSide);
  cut.tiles = s.g.N * cut.tiles_h * cut.tiles_w;
  return cut;
}

// Multiplications spared against bytes moved besides: transformed tiles, products and weights are written and read.
// Three more launches count as what a phone could move meanwhile.
bool pays(const Cut& cut, std::int64_t intensity) {
  const double pairs = static_cast<double>(cut.c_in) * static_cast<double>(cut.c_out);
  const std::int64_t images = cut.tiles / (cut.tiles_h * cut.tiles_w);
  const auto pixels = static_cast<double>(images * cut.result.h * cut.result.w);
  const auto tiles = static_cast<double>(cut.tiles);
  const double spared = 2.0 * pairs * (9.0 * pixels - kSquare * tiles);
  const double moved = 2.0 * sizeof(float) * kSquare * (tiles * static_cast<double>(cut.c_in + cut.c_out) + pairs);
  constexpr double kLaunches = 3.0 * (1 << 20);
  return spared > (moved + kLaunches) * static_cast<double>(intensity);
}

// `KB`: of a block's tiles, before and after the product, and of a pass's weights.
Cut make_cut(const KernelContext& context, ConvPart part, const Params& params) {
  Cut cut = geometry(conv_sizes(context.graph, context.node, part), part);
  cut.vec = param(params, "VEC");
  cut.lanes = param(params, "LX");
  while (cut.lanes * kSharers > static_cast<std::int64_t>(context.device.max_group)) cut.lanes /= 2;
  const std::int64_t floats = std::int64_t{param(params, "KB")} * 256;
  const std::int64_t passes = ceil_div(kSquare * cut.c_in * cut.c_out, floats);
  cut.pass_width = std::min(round_up(ceil_div(cut.width(), passes), 4 * kDivisor), cut.width());
  const std::int64_t blocks = ceil_div(cut.tiles * kSquare * (cut.source.channels + cut.pass_width), floats);
  // On CPUs an odd number, so that the 36 places that belong to a tile do not meet in one set of the cache. GPUs'
  // products read four at a time, and the weight gradient's K is tiles.
  const std::int64_t tiles_each = ceil_div(cut.tiles, blocks);
  cut.block_tiles = std::min(context.device.is_cpu() ? tiles_each | 1 : round_up(tiles_each, 4), cut.tiles);
  return cut;
}

GemmProblem product_of(const Cut& cut, std::int64_t tiles, std::int64_t channels) {
  GemmProblem p{.m = tiles,
                .n = channels,
                .k = cut.depth,
                .batch = kSquare,
                .batched_a = true,
                .batched_b = true,
                .placed = true};
  if (cut.part == ConvPart::weight_grad) {
    p.m = cut.c_in;
    p.k = tiles;
    p.transpose_a = true;
  }
  return p;
}

// Tiles (or rows of weights) of a work-item, and how many work-items that makes.
struct Shares {
  std::int64_t each = 1, count = 0;
};
Shares share(const KernelContext& context, std::int64_t tiles, bool sums) {
  constexpr std::int64_t kMost = 64;  // shares on CPUs, and rows of sums on GPUs
  const std::int64_t each = context.device.is_cpu() || sums ? ceil_div(tiles, kMost) : 1;
  return {.each = each, .count = ceil_div(tiles, each)};
}

struct Places {
  Place source, weights, product, sums;
  std::int64_t bytes = 0;
};

std::vector<Piece> pieces_of(const Cut& cut) {
  std::vector<Piece> pieces;
  for (std::int64_t channel = 0; channel < cut.width(); channel += cut.pass_width) {
    for (std::int64_t tile = 0; tile < cut.tiles; tile += cut.block_tiles) {
      pieces.push_back({.first = tile,
                        .tiles = std::min(cut.block_tiles, cut.tiles - tile),
                        .channel0 = channel,
                        .channels = std::min(cut.pass_width, cut.width() - channel)});
    }
  }
  return pieces;
}

std::int64_t sum_rows(const KernelContext& context, const Cut& cut) {
  if (cut.part == ConvPart::weight_grad) return share(context, cut.c_in, true).count;
  std::int64_t rows = 0;
  for (const Piece& piece : pieces_of(cut)) {
    if (piece.channel0 == 0) rows += share(context, piece.tiles, true).count;
  }
  return rows;
}

// The products' workspace comes first: that is where they expect it.
Places place(const KernelContext& context, const Cut& cut) {
  GemmScratch scratch(context.scratch, context.device.base_alignment);
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces_of(cut))
    bytes = std::max(bytes, gemm_workspace(context, product_of(cut, piece.tiles, piece.channels)));
  static_cast<void>(scratch.floats(ceil_div(bytes, 4)));
  Places places;
  const bool gradient = cut.part == ConvPart::weight_grad;
  const std::int64_t tile_floats = kSquare * cut.block_tiles;
  const std::int64_t weight_floats = kSquare * cut.depth * cut.pass_width;
  places.source = scratch.floats(tile_floats * cut.source.channels);
  // For the weight gradient: the transformed cotangent, and the product of all blocks.
  places.weights = scratch.floats(gradient ? tile_floats * cut.pass_width : weight_floats);
  places.product = scratch.floats(gradient ? weight_floats : tile_floats * cut.pass_width);
  const auto sums = static_cast<std::int64_t>(sum_outputs(context.node).size());
  places.sums = scratch.floats(sums > 0 ? sum_rows(context, cut) * sums * cut.width() : 0);
  places.bytes = scratch.used();
  return places;
}

std::vector<Arg> integers(std::initializer_list<std::int64_t> numbers) {
  std::vector<Arg> args;
  for (const std::int64_t number : numbers) args.push_back(Arg::integer(number));
  return args;
}

// `channels` and `count` shares of tiles or rows.
Launch transform(const KernelContext& context, const Cut& cut, Transform kind, const char* kernel,
                 std::int64_t channels, std::int64_t count, double bytes) {
  Launch launch{.program = {"winograd", {}, {{"VEC", static_cast<int>(cut.vec)}, {"PART", static_cast<int>(kind)}}},
                .kernel = kernel,
                .cost = {.flops = 2.0 * bytes, .bytes = bytes}};
  std::int64_t lx = 1;
  std::int64_t ly = 1;
  std::int64_t across = 1;
  if (!context.device.is_cpu()) {
    across = channels / cut.vec;
    while (lx < kGroup && lx < across) lx *= 2;
    ly = kGroup / lx;
  }
  launch.global = {static_cast<std::size_t>(round_up(across, lx)), static_cast<std::size_t>(round_up(count, ly)), 1};
  launch.local = {static_cast<std::size_t>(lx), static_cast<std::size_t>(ly), 1};
  return launch;
}

// Operand `operand`, an image, transformed to [36][tiles][channels].
Launch transform_image(const KernelContext& context, const Cut& cut, int operand, const Piece& piece, const Place& to) {
  const bool cotangent = operand == 1;
  const Image& image = cotangent ? cut.result : cut.source;
  const std::int64_t channel0 = cotangent ? piece.channel0 : 0;
  const std::int64_t channels = cotangent ? piece.channels : image.channels;
  const Transform kind = cotangent ? Transform::cotangent : Transform::source;
  const double bytes = 4.0 * static_cast<double>(piece.tiles * channels * (kSquare + kSide * kSide));
  const Shares shares = share(context, piece.tiles, false);
  Launch launch = transform(context, cut, kind, "winograd_source", channels, shares.count, bytes);
  launch.args = integers(
      {image.h, image.w, image.channels, cut.tiles_h, cut.tiles_w, image.pad_h, image.pad_w, piece.first, piece.tiles});
  if (cut.lanes == 0) launch.args.push_back(Arg::integer(shares.each));
  append(launch.args, {Arg::integer(channel0), Arg::integer(channels), Arg::tensor(to)});
  std::array widths = {static_cast<int>(cut.vec)};
  if (cut.lanes > 0) {
    widths = {kSharedVec};
    launch.kernel = "winograd_shared";
    launch.program = {"winograd_shared",
                      {},
                      {{"VEC", kSharedVec}, {"PART", static_cast<int>(kind)}, {"LX", static_cast<int>(cut.lanes)}}};
    launch.local = {static_cast<std::size_t>(cut.lanes), kSharers, 1};
    launch.global = {static_cast<std::size_t>(round_up(channels / kSharedVec, cut.lanes)),
                     static_cast<std::size_t>(piece.tiles) * kSharers, 1};
  }
  const Rendered x = render_operand(context, operand, "X", widths, true);
  launch.program.header = x.text;
  append(launch.args, x.args);
  return launch;
}

// The weights that the piece's result channels need, [36][depth][channels].
Launch transform_weights(const KernelContext& context, const Cut& cut, const Piece& piece, const Place& to) {
  const Shares shares = share(context, cut.depth, false);
  Launch launch = transform(context, cut, Transform::weights, "winograd_weights", piece.channels, shares.count,
                            4.0 * static_cast<double>(cut.depth * piece.channels * (kSquare + 9)));
  launch.program.defines.emplace_back("TURNED", cut.part == ConvPart::input_grad ? 1 : 0);
  launch.args = integers({cut.c_in, cut.c_out, cut.depth, piece.channel0, piece.channels, shares.each});
  launch.args.push_back(Arg::tensor(to));
  launch.args.push_back(Arg::tensor(context.inputs[static_cast<std::size_t>(plain_input(context.node, 1))]));
  return launch;
}

Launch transform_result(const KernelContext& context, const Cut& cut, const Piece& piece, const Places& places,
                        std::int64_t sum_row) {
  const bool sums = !sum_outputs(context.node).empty();
  const Shares shares = share(context, piece.tiles, sums);
  const double bytes = 4.0 * static_cast<double>(piece.tiles * piece.channels * (kSquare + kSide * kSide));
  Launch launch = transform(context, cut, Transform::result, "winograd_result", piece.channels, shares.count, bytes);
  launch.args = integers({cut.result.h, cut.result.w, cut.result.channels, cut.tiles_h, cut.tiles_w, piece.first,
                          piece.tiles, shares.each, piece.channel0, piece.channels});
  launch.args.push_back(Arg::tensor(places.product));
  const std::array widths = {static_cast<int>(cut.vec)};
  const Rendered y = render_epilogue(context, "Y", widths, true);
  launch.program.header = y.text;
  append(launch.args, y.args);
  if (sums) append(launch.args, {Arg::integer(sum_row), Arg::tensor(places.sums)});
  return launch;
}

Launch transform_filter(const KernelContext& context, const Cut& cut, const Piece& piece, const Places& places) {
  const bool sums = !sum_outputs(context.node).empty();
  const Shares shares = share(context, cut.c_in, sums);
  const double bytes = 4.0 * static_cast<double>(cut.c_in * piece.channels * (kSquare + 9));
  Launch launch = transform(context, cut, Transform::filter, "winograd_filter", piece.channels, shares.count, bytes);
  launch.args = integers({cut.c_in, cut.c_out, piece.channel0, piece.channels, shares.each});
  launch.args.push_back(Arg::tensor(places.product));
  const std::array widths = {static_cast<int>(cut.vec)};
  const Rendered y = render_epilogue(context, "Y", widths, true);
  launch.program.header = y.text;
  append(launch.args, y.args);
  if (sums) append(launch.args, {Arg::integer(0), Arg::tensor(places.sums)});
  return launch;
}

// A product's result that is added to what is there, after the first block.
Rendered added(const Place& to, bool first) {
  std::string text = R"(#define Y_PARAMS , global float *Y_out0, int Y_out0_at, int Y_first
#define Y_PASS , Y_out0, Y_out0_at, Y_first
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) {
  global float *to = Y_out0 + Y_out0_at + i;
  *to = Y_first ? value : *to + value;
}
)";
  for (const int width : {4, 8, 16}) {
    text += str("void Y_", width, "(float", width, " value, int i, int c Y_PARAMS) {\n  global float", width,
                " *to = (global float", width, " *)(Y_out0 + Y_out0_at + i);\n",
                "  *to = Y_first ? value : *to + value;\n}\n");
  }
  return {.text = std::move(text), .args = {Arg::tensor(to), Arg::integer(first ? 1 : 0)}};
}

void append_product(std::vector<Work>& work, const KernelContext& context, const Cut& cut, const Piece& piece,
                    const Places& places) {
  const Rendered a = as_it_stands(places.source);
  const Rendered b = as_it_stands(places.weights);
  const Rendered y =
      cut.part == ConvPart::weight_grad ? added(places.product, piece.first == 0) : as_it_stands(places.product);
  std::ranges::move(gemm_work(context, product_of(cut, piece.tiles, piece.channels), {.a = &a, .b = &b, .y = &y}),
                    std::back_inserter(work));
}

void append_sums(std::vector<Work>& work, const KernelContext& context, const Cut& cut, const Places& places) {
  if (sum_outputs(context.node).empty()) return;
  work.emplace_back(combine_sums(context, places.sums, sum_rows(context, cut), cut.width()));
}

std::vector<Work> weight_grad(const KernelContext& context, const Cut& cut) {
  const Places places = place(context, cut);
  std::vector<Work> work;
  for (const Piece& piece : pieces_of(cut)) {
    work.emplace_back(transform_image(context, cut, 0, piece, places.source));
    work.emplace_back(transform_image(context, cut, 1, piece, places.weights));
    append_product(work, context, cut, piece, places);
    if (piece.first + piece.tiles == cut.tiles) work.emplace_back(transform_filter(context, cut, piece, places));
  }
  append_sums(work, context, cut, places);
  return work;
}

std::vector<Work> convolution(const KernelContext& context, const Cut& cut) {
  const Places places = place(context, cut);
  std::vector<Work> work;
  std::int64_t sum_row = 0;
  for (const Piece& piece : pieces_of(cut)) {
    if (piece.first == 0) {
      work.emplace_back(transform_weights(context, cut, piece, places.weights));
      sum_row = 0;
    }
    work.emplace_back(transform_image(context, cut, 0, piece, places.source));
    append_product(work, context, cut, piece, places);
    work.emplace_back(transform_result(context, cut, piece, places, sum_row));
    sum_row += share(context, piece.tiles, true).count;
  }
  append_sums(work, context, cut, places);
  return work;
}

}  // namespace

bool winograd_fits(const KernelContext& context, const ConvSizes& s, ConvPart part) {
  const ops::Window& w = s.g.window;
  const bool is_3x3 = s.g.KH == 3 && s.g.KW == 3 && w.stride == std::array<std::int64_t, 2>{1, 1} &&
                      w.dilation == std::array<std::int64_t, 2>{1, 1} && w.pad[0] <= 2 && w.pad[1] <= 2;
  if (!is_3x3 || s.groups > 1 || s.g.C % kDivisor != 0 || s.c_out % kDivisor != 0 || s.g.OH < 1 || s.g.OW < 1)
    return false;
  if (context.node.attrs.has("winograd") && context.node.attrs.integer("winograd") != kAsked) return false;
  return part == ConvPart::weight_grad || plain_input(context.node, 1) >= 0;
}

bool winograd_pays(const KernelContext& context, const ConvSizes& sizes, ConvPart part, const Params& params) {
  if (params.empty()) return false;
  return context.node.attrs.has("winograd") || pays(geometry(sizes, part), param(params, "INTENSITY"));
}

std::vector<Work> winograd(const KernelContext& context, ConvPart part, const Params& params) {
  const Cut cut = make_cut(context, part, params);
  return part == ConvPart::weight_grad ? weight_grad(context, cut) : convolution(context, cut);
}

std::int64_t winograd_workspace(const KernelContext& context, ConvPart part, const Params& params) {
  return place(context, make_cut(context, part, params)).bytes;
}

}  // namespace stoker::opencl
