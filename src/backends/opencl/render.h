// Renders pointwise expressions to OpenCL C: whole functions that the kernels of kernels/*.cl call where they load an
// operand or store a result. Vectors of 1, 2, 4, 8 or 16 floats run along channels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/kernel.h"
#include "graph/expr.h"

namespace stoker::opencl {

// Text for Program::header, and the arguments that the kernel passes on.
struct Rendered {
  std::string text;       // #defines and functions
  std::vector<Arg> args;  // of the kernel, in the order of NAME_PARAMS
};

// The operand number `operand` of the node's kernel op with its prologue, as a family of functions
//     floatW NAME_W(int i, int c NAME_PASS)
// that give the W elements of the operand from element `i` on (c is i modulo the innermost size; i and c are multiples
// of W where W > 1 and `aligned`). Defines, for the kernel's source:
//     NAME_PARAMS  `, global const float* NAME0, int NAME0_at, ...`, to append to the kernel's parameter list
//     NAME_PASS    `, NAME0, NAME0_at, ...`, to append to a call
//     NAME_PLAIN   1 if there is no prologue: the tensor itself, so that a kernel may use its own (image) loads
// An operand without a prologue is rendered too, so that a kernel needs one way only. `widths` says which W to make.
[[nodiscard]] Rendered render_operand(const KernelContext& context, int operand, std::string_view name,
                                      std::span<const int> widths, bool aligned);

// The node's epilogue (the identity if there is none), as functions
//     void NAME_W(floatW value, int i, int c [, floatW* sum0 [, floatW* sum1 ...]] NAME_PASS)
// that store what is stored at element `i` on, and *add* each per-channel sum's value to *sumJ (the kernel clears them,
// and combines rows in a fixed order). Defines NAME_PARAMS and NAME_PASS as above, and
//     NAME_SUMS         how many sums there are (0..)
//     NAME_SUM_ARGS     `, &sums[0], &sums[1]` for a kernel's array `floatW sums[NAME_SUMS]`; empty for none
// `render_operand`'s rules for i and c hold. The sums' node outputs are not among the arguments: see sum_outputs().
[[nodiscard]] Rendered render_epilogue(const KernelContext& context, std::string_view name, std::span<const int> widths,
                                       bool aligned);

// The node's outputs that are sums per channel, in the order of the epilogue's sums.
[[nodiscard]] std::vector<int> sum_outputs(const Node& node);
// The stage that adds up `rows` rows of partial sums [rows, sums, channels] at `partials` into the sum outputs, in the
// order of rows.
[[nodiscard]] Stage combine_sums(const KernelContext& context, const Place& partials, std::int64_t rows,
                                 std::int64_t channels);

// One expression as the body of a function over variables: `operands[i]` is the text of operand i, results are assigned
// to `results[j]`, `type` is float, float4, ... ; `element` is the text of the element's number (for uniform).
[[nodiscard]] std::string render_body(const Expr& expr, std::span<const std::string> operands,
                                      std::span<const std::string> results, int width, std::string_view element);
// The functions that rendered bodies call (Philox, NaN-keeping minimum, ...), for a program's header.
[[nodiscard]] std::string_view render_prelude();

}  // namespace stoker::opencl
