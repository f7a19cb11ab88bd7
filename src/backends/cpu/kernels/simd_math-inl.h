// Functions on vectors of floats, a few ulp from the true value, with NaN and infinity treated as std:: does. Included
// once a target, after highway.h. Highway's own functions are made for finite arguments.
#if defined(STOKER_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STOKER_SIMD_MATH_INL_H_
#undef STOKER_SIMD_MATH_INL_H_
#else
#define STOKER_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// NaN in x gives NaN; `bound` is not NaN. x86's instruction returns its second argument where either is NaN.
template <class V>
HWY_INLINE V max_bound(V bound, V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Max(bound, x);
#else
  return hn::IfThenElse(hn::Gt(bound, x), bound, x);
#endif
}

template <class V>
HWY_INLINE V min_bound(V bound, V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::Min(bound, x);
#else
  return hn::IfThenElse(hn::Lt(bound, x), bound, x);
#endif
}

template <class V>
HWY_INLINE V max_nan(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Gt(a, b)), a, b);
}

template <class V>
HWY_INLINE V min_nan(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::Lt(a, b)), a, b);
}

// Beyond this e^x is infinite, and Highway's reduction would overflow.
inline constexpr float kExpLimit = 89.0F;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, min_bound(hn::Set(d, kExpLimit), x)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_of(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Expm1(d, min_bound(hn::Set(d, kExpLimit), x)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of(D d, V x) {
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const V y = hn::IfThenElse(
      hn::Gt(x, hn::Zero(d)), hn::Log(d, x),
      hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), hn::Set(d, std::numeric_limits<float>::quiet_NaN())));
  return hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

// N. Juffa's minimax polynomials, within one ulp: x + x P(x^2) near zero, 1 - exp(Q(|x|)) further out.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf_of(D d, V x) {
  const auto constant = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = hn::Abs(x);
  const V s = hn::Mul(x, x);
  V far = hn::MulAdd(constant(-1.72853470e-5F), t, constant(3.83197126e-4F));
  const V u = hn::MulAdd(constant(-3.88396438e-3F), t, constant(2.42546219e-2F));
  far = hn::MulAdd(far, s, u);
  far = hn::MulAdd(far, t, constant(-1.06777877e-1F));
  far = hn::MulAdd(far, t, constant(-6.34846687e-1F));
  far = hn::MulAdd(far, t, constant(-1.28717512e-1F));
  far = hn::MulAdd(far, t, hn::Neg(t));
  far = hn::CopySign(hn::Sub(constant(1.0F), hn::Exp(d, far)), x);
  V near = constant(-5.96761703e-4F);
  near = hn::MulAdd(near, s, constant(4.99119423e-3F));
  near = hn::MulAdd(near, s, constant(-2.67681349e-2F));
  near = hn::MulAdd(near, s, constant(1.12819925e-1F));
  near = hn::MulAdd(near, s, constant(-3.76125336e-1F));
  near = hn::MulAdd(near, s, constant(1.28379166e-1F));
  near = hn::MulAdd(near, x, x);
  return hn::IfThenElse(hn::Gt(t, constant(0.927734375F)), far, near);
}

}  // namespace stoker::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
