// Tiles against the plain evaluator: random expressions, rectangles, element types, sums, aliasing.
#include "backends/cpu/kernels/tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace stoker::cpu {
namespace {

struct Scratch {
  std::vector<std::byte> memory = std::vector<std::byte>(kTileScratchBytes + 64);
  [[nodiscard]] std::byte* data() {
    return memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  }
};

std::vector<float> random_floats(std::int64_t n, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = random.normal();
  return values;
}

template <typename T>
const std::byte* bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <typename T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::int64_t position(Access access, std::int64_t row, std::int64_t channel, std::int64_t channels) {
  switch (access) {
    case Access::full: return row * channels + channel;
    case Access::channel: return channel;
    case Access::row: return row;
    default: return 0;
  }
}

std::int64_t elements(Access access, std::int64_t rows, std::int64_t channels) {
  switch (access) {
    case Access::full: return rows * channels;
    case Access::channel: return channels;
    case Access::row: return rows;
    default: return 1;
  }
}

// Expressions of smooth ops, whose value does not jump with rounding.
Expr random_expr(Random& random, int inputs, int length, int outputs) {
  ExprBuilder b;
  std::vector<int> values;
  for (int i = 0; i < inputs; ++i) values.push_back(b.input(i));
  values.push_back(b.constant(0.75F));
  values.push_back(b.constant(-0.5F));
  const auto any = [&] { return values[random.below(values.size())]; };
  for (int i = 0; i < length; ++i) {
    const int x = any();
    const int y = any();
    switch (random.below(13)) {
      case 0: values.push_back(b.add(x, y)); break;
      case 1: values.push_back(b.sub(x, y)); break;
      case 2: values.push_back(b.add(b.mul(x, b.constant(0.5F)), y)); break;
      case 3: values.push_back(b.maximum(x, y)); break;
      case 4: values.push_back(b.minimum(b.maximum(x, b.constant(-1.0F)), b.constant(1.5F))); break;
      case 5: values.push_back(b.emit(ExprOp::sigmoid, x)); break;
      case 6: values.push_back(b.emit(ExprOp::tanh, b.mul(x, y))); break;
      case 7: values.push_back(b.emit(ExprOp::erf, x)); break;
      case 8: values.push_back(b.emit(ExprOp::exp, b.minimum(x, b.constant(1.0F)))); break;
      case 9: values.push_back(b.emit(ExprOp::log, b.add(b.emit(ExprOp::abs, x), b.constant(1.0F)))); break;
      case 10: values.push_back(b.emit(ExprOp::sqrt, b.add(b.emit(ExprOp::abs, x), b.constant(0.5F)))); break;
      case 11: values.push_back(b.minimum(x, y)); break;
      case 12: values.push_back(b.emit(ExprOp::neg, x)); break;
      default: break;
    }
  }
  std::vector<int> chosen;
  for (int i = 0; i < outputs; ++i) chosen.push_back(i == 0 ? values.back() : any());
  return b.finish(chosen, inputs);
}

struct Case {
  std::vector<Access> accesses;
  std::vector<std::vector<float>> data;
  std::vector<TileArg> args;

  Case(std::vector<Access> kinds, std::int64_t rows, std::int64_t channels, Random& random)
      : accesses(std::move(kinds)) {
    for (const Access access : accesses) data.push_back(random_floats(elements(access, rows, channels), random));
    for (std::size_t i = 0; i < accesses.size(); ++i) args.push_back({.data = bytes(data[i]), .access = accesses[i]});
  }

  [[nodiscard]] std::vector<double> expected(const Expr& expr, std::int64_t row, std::int64_t channel,
                                             std::int64_t channels) const {
    std::vector<double> inputs;
    for (std::size_t i = 0; i < accesses.size(); ++i)
      inputs.push_back(
          static_cast<double>(data[i][static_cast<std::size_t>(position(accesses[i], row, channel, channels))]));
    std::vector<double> outputs(expr.outputs.size());
    evaluate(expr, inputs, outputs, static_cast<std::uint64_t>(row * channels + channel));
    return outputs;
  }
};

const std::vector<Access> kAccesses = {Access::full,    Access::full, Access::channel,
                                       Access::channel, Access::row,  Access::scalar};

TEST(Tile, RandomExpressionsMatchTheEvaluatorOnAnyRectangle) {
  Random random(1);
  Scratch scratch;
  for (const std::int64_t channels : {1, 7, 16, 24, 63, 65, 300, 2500}) {
    const std::int64_t rows = channels > 1000 ? 3 : 133;
    for (int trial = 0; trial < 6; ++trial) {
      const Case c(kAccesses, rows, channels, random);
      const Expr expr = random_expr(random, 6, 14, 1);
      const TileExpr tile(expr, c.args, channels);
      Rect rect{.rows = rows, .channels = channels};
      if (trial % 2 == 1 && channels > 2)
        rect = {.row = 1, .rows = rows / 2, .row_step = 2, .channel = 1, .channels = channels - 2};
      const std::int64_t stride = rect.channels + trial % 3;
      std::vector<float> out(static_cast<std::size_t>(rect.rows * stride));
      evaluate_rect(tile, rect, out.data(), stride, scratch.data());
      for (std::int64_t r = 0; r < rect.rows; ++r) {
        for (std::int64_t k = 0; k < rect.channels; ++k) {
          const double want = c.expected(expr, rect.row + r * rect.row_step, rect.channel + k, channels)[0];
          const auto got = static_cast<double>(out[static_cast<std::size_t>(r * stride + k)]);
          ASSERT_NEAR(got, want, 2e-5 * std::max(1.0, std::abs(want))) << to_string(expr) << " at " << r << "," << k;
        }
      }
    }
  }
}

TEST(Tile, LogicAndComparisonsMatchTheEvaluator) {
  Random random(2);
  Scratch scratch;
  const std::int64_t rows = 9;
  const std::int64_t channels = 37;
  const Case c({Access::full, Access::channel, Access::full}, rows, channels, random);
  for (int op = 0; op <= static_cast<int>(ExprOp::mul_add); ++op) {
    const auto expr_op = static_cast<ExprOp>(op);
    if (arity(expr_op) == 0) continue;
    for (const bool rounded : {false, true}) {
      ExprBuilder b;
      std::vector<int> in;
      for (int i = 0; i < 3; ++i) in.push_back(rounded ? b.emit(ExprOp::floor, b.input(i)) : b.input(i));
      const int n = arity(expr_op);
      const int out = b.emit(expr_op, in[0], n > 1 ? in[1] : -1, n > 2 ? in[2] : -1);
      const Expr expr = b.finish(std::vector{out}, 3);
      std::vector<float> got(static_cast<std::size_t>(rows * channels));
      evaluate_rect(TileExpr(expr, c.args, channels), {.rows = rows, .channels = channels}, got.data(), channels,
                    scratch.data());
      for (std::int64_t i = 0; i < rows * channels; ++i) {
        const auto want = static_cast<float>(c.expected(expr, i / channels, i % channels, channels)[0]);
        const float value = got[static_cast<std::size_t>(i)];
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(value)) << to_string(expr);
        } else if (std::isinf(want)) {
          ASSERT_EQ(value, want) << to_string(expr);
        } else {
          ASSERT_NEAR(value, want, 2e-6F * std::max(1.0F, std::abs(want))) << to_string(expr);
        }
      }
    }
  }
}

TEST(Tile, FunctionsTreatNanAndInfinityAsTheStandardLibrary) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {nan,     inf,    -inf,    0.0F,  -0.0F, 1.0F,  -1.0F, 88.0F, -88.0F, 100.0F,
                                -100.0F, 1e-20F, -1e-20F, 1e-3F, 0.92F, 0.94F, -3.0F, 2.0F,  5.0F,   1e30F};
  Scratch scratch;
  ExprBuilder clamp_builder;
  const int clamp = clamp_builder.minimum(clamp_builder.maximum(clamp_builder.input(0), clamp_builder.constant(0.0F)),
                                          clamp_builder.constant(6.0F));
  std::vector<Expr> exprs = {clamp_builder.finish(std::vector{clamp}, 1)};
  for (const ExprOp op : {ExprOp::exp, ExprOp::expm1, ExprOp::log, ExprOp::sqrt, ExprOp::rsqrt, ExprOp::tanh,
                          ExprOp::sigmoid, ExprOp::erf, ExprOp::floor}) {
    ExprBuilder b;
    exprs.push_back(b.finish(std::vector{b.emit(op, b.input(0))}, 1));
  }
  for (const Expr& expr : exprs) {
    std::vector<float> got(x.size());
    evaluate_rect(TileExpr(expr, {{.data = bytes(x)}}, 20), {.rows = 1, .channels = 20}, got.data(), 20,
                  scratch.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::vector<double> in = {static_cast<double>(x[i])};
      std::vector<double> out(1);
      evaluate(expr, in, out);
      const auto want = static_cast<float>(out[0]);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got[i])) << to_string(expr) << " of " << x[i];
      } else if (std::isinf(want) || want == 0.0F) {
        EXPECT_EQ(got[i], want) << to_string(expr) << " of " << x[i];
      } else {
        EXPECT_NEAR(got[i], want, 1e-6F * std::abs(want) + 1e-37F) << to_string(expr) << " of " << x[i];
      }
    }
  }
}

TEST(Tile, ErfIsAFewUlpFromTheTruth) {
  Scratch scratch;
  std::vector<float> x;
  for (int i = -4096; i < 4096; ++i) x.push_back(static_cast<float>(i) / 1000.0F);
  std::vector<float> got(x.size());
  ExprBuilder b;
  const Expr expr = b.finish(std::vector{b.emit(ExprOp::erf, b.input(0))}, 1);
  const auto n = static_cast<std::int64_t>(x.size());
  evaluate_rect(TileExpr(expr, {{.data = bytes(x)}}, n), {.rows = 1, .channels = n}, got.data(), n, scratch.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::erf(static_cast<double>(x[i]));
    ASSERT_NEAR(static_cast<double>(got[i]), want, std::abs(want) * 3e-7) << x[i];
  }
}

TEST(Tile, UniformGivesTheBitsOfUniformAt) {
  Scratch scratch;
  const std::vector<std::int32_t> seed = {123456789};  // more digits than a float holds
  const std::vector<std::int32_t> step = {16777219};
  const std::int64_t rows = 11;
  const std::int64_t channels = 39;
  ExprBuilder b;
  const Expr expr = b.finish(std::vector{b.emit(ExprOp::uniform, b.input(0), b.input(1), -1, 77.0F)}, 2);
  const TileExpr tile(expr,
                      {{.data = bytes(seed), .dtype = DType::i32, .access = Access::scalar},
                       {.data = bytes(step), .dtype = DType::i32, .access = Access::scalar}},
                      channels);
  std::vector<float> got(static_cast<std::size_t>(rows * channels));
  evaluate_rect(tile, {.row = 2, .rows = 4, .row_step = 2, .channel = 3, .channels = 30}, got.data(), 30,
                scratch.data());
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t k = 0; k < 30; ++k)
      ASSERT_EQ(got[static_cast<std::size_t>(r * 30 + k)],
                uniform_at(123456789U, 16777219U, 77U, static_cast<std::uint64_t>((2 + 2 * r) * channels + 3 + k)));
  }
}

TEST(Tile, ElementTypesAreConvertedAtLoadAndStore) {
  Scratch scratch;
  const std::int64_t n = 67;
  std::vector<std::int32_t> i32;
  std::vector<std::int64_t> i64;
  std::vector<std::uint8_t> u8;
  for (std::int64_t i = 0; i < n; ++i) {
    i32.push_back(static_cast<std::int32_t>(i * 1000 - 30000));
    i64.push_back(i * 3 - 100);
    u8.push_back(static_cast<std::uint8_t>(i * 3));
  }
  ExprBuilder b;
  const int sum = b.add(b.add(b.input(0), b.input(1)), b.input(2));
  const int odd = b.gt(b.input(0), b.constant(0.0F));
  const Expr expr = b.finish(std::vector{sum, sum, odd, b.input(2), b.input(0)}, 3);
  std::vector<float> f32_out(static_cast<std::size_t>(n));
  std::vector<std::int32_t> i32_out(static_cast<std::size_t>(n));
  std::vector<std::uint8_t> b8_out(static_cast<std::size_t>(n));
  std::vector<std::uint8_t> u8_out(static_cast<std::size_t>(n));
  std::vector<std::int64_t> i64_out(static_cast<std::size_t>(n));
  const TileEpilogue all(expr,
                         {{.data = bytes(i32), .dtype = DType::i32},
                          {.data = bytes(i64), .dtype = DType::i64},
                          {.data = bytes(u8), .dtype = DType::u8}},
                         {{.data = bytes(f32_out)},
                          {.data = bytes(i32_out), .dtype = DType::i32},
                          {.data = bytes(b8_out), .dtype = DType::b8},
                          {.data = bytes(u8_out), .dtype = DType::u8},
                          {.data = bytes(i64_out), .dtype = DType::i64}},
                         n);
  all.apply({.rows = 1, .channels = n}, nullptr, 0, nullptr, false, scratch.data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const std::int64_t want = i32[i] + i64[i] + u8[i];
    EXPECT_EQ(f32_out[i], static_cast<float>(want));
    EXPECT_EQ(i32_out[i], want);
    EXPECT_EQ(b8_out[i], i32[i] > 0 ? 1 : 0);
    EXPECT_EQ(u8_out[i], u8[i]);
    EXPECT_EQ(i64_out[i], i32[i]);
  }
}

TEST(Tile, EpilogueStoresAndSumsOverChunks) {
  Random random(3);
  Scratch scratch;
  for (const std::int64_t channels : {1, 7, 24, 64, 1100}) {
    const std::int64_t rows = channels > 1000 ? 21 : 210;
    const Case c({Access::full, Access::channel, Access::full}, rows, channels, random);
    for (int trial = 0; trial < 8; ++trial) {
      const Expr expr = random_expr(random, 3, 8, 4);
      std::vector<std::vector<float>> out(2, std::vector<float>(static_cast<std::size_t>(rows * channels)));
      std::vector<std::vector<float>> sums(2, std::vector<float>(static_cast<std::size_t>(channels)));
      std::vector<TileArg> args = c.args;
      args[0].data = nullptr;
      const TileEpilogue epilogue(expr, args,
                                  {{.data = bytes(out[0])},
                                   {.data = bytes(sums[0]), .kind = ResultKind::sum_channel},
                                   {.data = bytes(out[1])},
                                   {.data = bytes(sums[1]), .kind = ResultKind::sum_channel}},
                                  channels);
      const std::int64_t chunk = rows / 3;
      std::vector<float> partial(static_cast<std::size_t>(3 * 2 * channels), 1e9F);
      for (std::int64_t i = 0; i < 3; ++i) {
        float* part = partial.data() + i * 2 * channels;
        for (std::int64_t first = 0; first < chunk; first += 5) {
          const std::int64_t row = i * chunk + first;
          for (std::int64_t from = 0; from < channels; from += 40)
            epilogue.apply({.row = row,
                            .rows = std::min<std::int64_t>(5, chunk - first),
                            .channel = from,
                            .channels = std::min<std::int64_t>(40, channels - from)},
                           c.data[0].data() + row * channels + from, channels, part, first > 0, scratch.data());
        }
      }
      epilogue.finish_sums(partial.data(), 3);
      std::vector<std::vector<double>> want_sums(2, std::vector<double>(static_cast<std::size_t>(channels)));
      for (std::int64_t i = 0; i < rows * channels; ++i) {
        const auto want = c.expected(expr, i / channels, i % channels, channels);
        const auto k = static_cast<std::size_t>(i);
        ASSERT_NEAR(static_cast<double>(out[0][k]), want[0], 2e-5 * std::max(1.0, std::abs(want[0])));
        ASSERT_NEAR(static_cast<double>(out[1][k]), want[2], 2e-5 * std::max(1.0, std::abs(want[2])));
        want_sums[0][static_cast<std::size_t>(i % channels)] += want[1];
        want_sums[1][static_cast<std::size_t>(i % channels)] += want[3];
      }
      for (std::size_t s = 0; s < 2; ++s) {
        for (std::size_t k = 0; k < static_cast<std::size_t>(channels); ++k)
          ASSERT_NEAR(static_cast<double>(sums[s][k]), want_sums[s][k], 1e-2 + 1e-5 * std::abs(want_sums[s][k]));
      }
    }
  }
}

TEST(Tile, OutputsMayStandWhereInputsStand) {
  Random random(4);
  Scratch scratch;
  const std::int64_t n = 5000;
  for (int trial = 0; trial < 40; ++trial) {
    Case c({Access::full, Access::full, Access::full}, 1, n, random);
    const Expr expr = random_expr(random, 3, 6, 3);
    const Case original = c;
    // Outputs 0 and 1 stand on inputs 1 and 0.
    std::vector<float> out(static_cast<std::size_t>(n));
    const TileEpilogue swap(expr, c.args,
                            {{.data = bytes(c.data[1])}, {.data = bytes(c.data[0])}, {.data = bytes(out)}}, n);
    swap.apply({.rows = 1, .channels = n}, nullptr, 0, nullptr, false, scratch.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const auto want = original.expected(expr, 0, i, n);
      const auto k = static_cast<std::size_t>(i);
      ASSERT_NEAR(static_cast<double>(c.data[1][k]), want[0], 2e-5 * std::max(1.0, std::abs(want[0])));
      ASSERT_NEAR(static_cast<double>(c.data[0][k]), want[1], 2e-5 * std::max(1.0, std::abs(want[1])));
      ASSERT_NEAR(static_cast<double>(out[k]), want[2], 2e-5 * std::max(1.0, std::abs(want[2])));
    }
  }
}

// Values on, inside and outside the bounds; the affine value is exact, so that comparisons do not jump.
TEST(Tile, JoinedInstructionsKeepTheMeaningOfTheirParts) {
  Scratch scratch;
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-1.0F, 0.0F, 0.5F, 3.0F, 5.5F, 6.0F, 7.0F, inf, -inf, std::nanf(""), 2.0F};
  std::vector<float> g(x.size());
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i) + 1.0F;
  const std::vector<float> scale(x.size(), 1.0F);
  const std::vector<float> shift(x.size(), 0.0F);
  ExprBuilder b;
  const int zero = b.constant(0.0F);
  const int six = b.constant(6.0F);
  const auto affine = [&](float offset) {
    return b.add(b.mul(b.add(b.input(0), b.constant(offset)), b.input(2)), b.input(3));
  };
  const auto inside = [&](int value) { return b.emit(ExprOp::logical_and, b.gt(value, zero), b.lt(value, six)); };
  std::vector<int> outputs;
  outputs.push_back(b.minimum(b.maximum(affine(0.0F), zero), six));
  outputs.push_back(b.select(inside(affine(0.5F)), b.input(1), zero));
  outputs.push_back(b.select(inside(b.input(0)), b.input(1), zero));
  outputs.push_back(b.select(b.gt(b.input(0), zero), b.input(1), zero));
  outputs.push_back(b.select(b.lt(b.input(0), six), b.input(1), six));
  outputs.push_back(inside(b.input(0)));
  outputs.push_back(b.maximum(b.minimum(b.input(0), zero), six));
  outputs.push_back(b.add(b.mul(b.input(1), b.input(2)), b.add(b.mul(b.input(1), b.input(1)), b.input(3))));
  const Expr expr = b.finish(outputs, 4);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::vector<float>> got(outputs.size(), std::vector<float>(x.size()));
  std::vector<TileResult> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.push_back({.data = bytes(got[i])});
  const std::vector<TileArg> args = {
      {.data = bytes(x)}, {.data = bytes(g)}, {.data = bytes(scale)}, {.data = bytes(shift)}};
  TileEpilogue(expr, args, results, n).apply({.rows = 1, .channels = n}, nullptr, 0, nullptr, false, scratch.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::vector<double> in = {static_cast<double>(x[i]), static_cast<double>(g[i]), 1.0, 0.0};
    std::vector<double> want(outputs.size());
    evaluate(expr, in, want);
    for (std::size_t k = 0; k < want.size(); ++k) {
      if (std::isnan(want[k])) {
        EXPECT_TRUE(std::isnan(got[k][i])) << "output " << k << " of " << x[i];
      } else {
        EXPECT_EQ(got[k][i], static_cast<float>(want[k])) << "output " << k << " of " << x[i];
      }
    }
  }
}

TEST(Tile, SumsOfProductsNeedNoTileForThem) {
  Scratch scratch;
  Random random(6);
  const std::int64_t rows = 70;
  const std::int64_t channels = 27;
  const Case c({Access::full, Access::full, Access::channel}, rows, channels, random);
  ExprBuilder b;
  const int shifted = b.sub(b.input(0), b.input(2));
  const std::vector<int> values = {b.mul(shifted, shifted), b.mul(b.input(0), b.input(1)),
                                   b.mul(b.input(1), b.input(2))};
  const Expr expr = b.finish(values, 3);
  std::vector<std::vector<float>> sums(3, std::vector<float>(static_cast<std::size_t>(channels)));
  std::vector<TileResult> results;
  for (std::vector<float>& sum : sums) results.push_back({.data = bytes(sum), .kind = ResultKind::sum_channel});
  std::vector<float> partial(static_cast<std::size_t>(3 * channels));
  const TileEpilogue epilogue(expr, c.args, results, channels);
  epilogue.apply({.rows = rows, .channels = channels}, nullptr, 0, partial.data(), false, scratch.data());
  epilogue.finish_sums(partial.data(), 1);
  for (std::int64_t k = 0; k < channels; ++k) {
    std::vector<double> want(3);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto value = c.expected(expr, r, k, channels);
      for (std::size_t i = 0; i < 3; ++i) want[i] += value[i];
    }
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(static_cast<double>(sums[i][static_cast<std::size_t>(k)]), want[i], 1e-4);
  }
}

TEST(Tile, PlainOperandsAreKnown) {
  std::vector<float> x(4);
  EXPECT_TRUE(TileExpr(identity_expr(), {{.data = bytes(x)}}, 4).is_plain());
  EXPECT_FALSE(TileExpr(identity_expr(), {{.data = bytes(x), .dtype = DType::i32}}, 4).is_plain());
  EXPECT_FALSE(TileExpr(identity_expr(), {{.data = bytes(x), .access = Access::channel}}, 4).is_plain());
}

TEST(Tile, HalfPrecisionIsRefusedByName) {
  std::vector<float> x(4);
  EXPECT_THROW(TileExpr(identity_expr(), {{.data = bytes(x), .dtype = DType::f16}}, 4), Error);
}

}  // namespace
}  // namespace stoker::cpu
