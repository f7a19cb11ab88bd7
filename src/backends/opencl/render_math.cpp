// Logarithm, power and exp(x) - 1 in OpenCL C, for floats and vectors alike, to 2 ulp (a power of huge or tiny result:
// some more). Drivers' own may keep tables in constant memory, and Mesa's Mali driver fails to build those.
#include "backends/opencl/render.h"
#include "base/error.h"

namespace stoker::opencl {
namespace {

// TYPE is float or floatW, INT int or intW, W the width. Masks are 1 or, in vectors, -1; select() takes both.
constexpr std::string_view kMath = R"(#ifndef STOKER_MATH_W
#define STOKER_MATH_W
// log(m) and e for |x| = m * 2^e, m from sqrt(1/2) to sqrt(2); the series is musl's.
TYPE stoker_log_parts_W(TYPE x, INT* e) {
  const INT tiny = x < (TYPE)(1.17549435e-38f);
  const INT bits = as_INT(select(x, x * 33554432.0f, tiny)) - 0x3f3504f3;
  *e = (bits >> 23) - select((INT)(0), (INT)(25), tiny);
  const TYPE f = as_TYPE((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const TYPE s = f / (2.0f + f);
  const TYPE z = s * s;
  const TYPE w = z * z;
  const TYPE half_square = 0.5f * f * f;
  const TYPE series = w * (0.40000972152f + w * 0.24279078841f) + z * (0.66666662693f + w * 0.28498786688f);
  return s * (half_square + series) - half_square + f;
}
TYPE stoker_log_W(TYPE x) {
  INT e;
  const TYPE parts = stoker_log_parts_W(x, &e);
  const TYPE k = convert_TYPE(e);
  TYPE y = (parts + k * 9.0580006145e-06f) + k * 6.9313812256e-01f;
  y = select(y, x, (x == (TYPE)(INFINITY)) | (x != x));
  y = select(y, (TYPE)(-INFINITY), x == (TYPE)(0.0f));
  return select(y, (TYPE)(NAN), x < (TYPE)(0.0f));
}
// 2^(b log2 |a|), the product of b and the exponent without rounding; then the special cases of C's pow.
TYPE stoker_pow_W(TYPE a, TYPE b) {
  INT e;
  const TYPE size = fabs(a);
  const TYPE l = stoker_log_parts_W(size, &e) * 1.44269504f;
  const TYPE k = convert_TYPE(e);
  const TYPE high = as_TYPE(as_INT(b) & (INT)(0xfffff000));
  const TYPE whole = high * k;
  const TYPE rest = (b - high) * k + b * l;
  const TYPE n = rint(fmin(fmax(whole + rest, -160.0f), 160.0f));
  const INT power = convert_INT(n);
  const INT half_power = power >> 1;
  TYPE y = exp2((whole - n) + rest) * as_TYPE((half_power + 127) << 23) * as_TYPE((power - half_power + 127) << 23);
  const INT up = b > (TYPE)(0.0f);
  const TYPE vast = select((TYPE)(0.0f), (TYPE)(INFINITY), up);
  const TYPE none = select((TYPE)(INFINITY), (TYPE)(0.0f), up);
  const INT endless = fabs(b) == (TYPE)(INFINITY);
  y = select(y, none, (size == (TYPE)(0.0f)) | (endless & (size < (TYPE)(1.0f))));
  y = select(y, vast, (size == (TYPE)(INFINITY)) | (endless & (size > (TYPE)(1.0f))));
  y = select(y, (TYPE)(1.0f), endless & (size == (TYPE)(1.0f)));
  const INT odd = (floor(b) == b) & (floor(b * 0.5f) != b * 0.5f) & (fabs(b) < (TYPE)(16777216.0f));
  y = select(y, -y, (as_INT(a) < (INT)(0)) & odd);
  y = select(y, (TYPE)(NAN), (a < (TYPE)(0.0f)) & (size != (TYPE)(INFINITY)) & (floor(b) != b));
  y = select(y, (TYPE)(NAN), (a != a) | (b != b));
  return select(y, (TYPE)(1.0f), (a == (TYPE)(1.0f)) | (b == (TYPE)(0.0f)));
}
TYPE stoker_expm1_W(TYPE x) {
  TYPE series = 1.0f + x * (0.5f + x * (0.16666667f + x * (0.041666668f + x * (0.008333334f + x * (0.0013888889f
                + x * 0.0001984127f)))));
  series *= x;
  return select(exp(x) - 1.0f, series, fabs(x) < (TYPE)(0.5f));
}
#endif
)";

}  // namespace

std::string render_math(int width) {
  std::string text(kMath);
  // `as_TYPE` and `convert_TYPE` follow by themselves; _W comes last, so that no other word is cut.
  const std::pair<std::string_view, std::string> words[] = {
      {"TYPE", vector_type("float", width)}, {"INT", vector_type("int", width)}, {"_W", str("_", width)}};
  for (const auto& [word, with] : words) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size()))
      text.replace(at, word.size(), with);
  }
  return text;
}

}  // namespace stoker::opencl
