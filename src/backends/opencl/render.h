// Renders pointwise expressions to OpenCL C: whole functions that the kernels of kernels/*.cl call where they load an
// operand or store a result. Vectors of 1, 2, 4, 8 or 16 floats run along channels. Nothing that depends on sizes or
// places is in a text, so that equal work of different layers is one program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/kernel.h"
#include "graph/expr.h"

namespace stoker::opencl {

// Text for Program::header, and the arguments that the kernel passes on. Texts of one program may be put one after
// another: what they share is guarded.
struct Rendered {
  std::string text;       // #defines and functions
  std::vector<Arg> args;  // of the kernel, in the order of NAME_PARAMS
};

// The operand number `operand` of the node's kernel op with its prologue, as a family of functions
//     floatW NAME_W(int i, int c NAME_PARAMS)         called as NAME_W(i, c NAME_PASS)
// that give the W elements of the operand from element `i` on (c is i modulo the innermost size; the W elements stand
// in one row; i and c are multiples of W where W > 1 and `aligned`). Defines, for the kernel's source:
//     NAME_PARAMS  `, global const float* NAME0, int NAME0_at, ...`, to append to the kernel's parameter list
//     NAME_PASS    `, NAME0, NAME0_at, ...`, to append to a call
//     NAME_PLAIN   1 if there is no prologue: the f32 tensor NAME0 itself, so that a kernel may use its own (image)
//                  loads; else 0
// An operand without a prologue is rendered too, so that a kernel needs one way only. `widths` says which W to make.
[[nodiscard]] Rendered render_operand(const KernelContext& context, int operand, std::string_view name,
                                      std::span<const int> widths, bool aligned);

// The node's epilogue (the identity if there is none), as functions
//     void NAME_W(floatW value, int i, int c [, floatW* sum0 [, floatW* sum1 ...]] NAME_PARAMS)
// that store what is stored at element `i` on, and *add* each per-channel sum's value to *sumJ (the kernel clears them,
// and combines rows in a fixed order); called as NAME_W(value, i, c NAME_SUM_ARGS NAME_PASS). Defines NAME_PARAMS,
// NAME_PASS as above, NAME_PLAIN (1: the value is stored to the f32 tensor NAME_out0 and that is all), and
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

// An operand of an expression: the text of its value and, for an integer scalar, the text of that integer (a seed may
// not fit into a float).
struct OperandText {
  std::string value;
  std::string whole;
};

// One expression as statements: `operands[i]` is operand i (each is evaluated at most once), results are assigned to
// `results[j]` after all operands have been evaluated; all are floatWs; `element` is the text of the number of the
// first element (for uniform). Equal expressions give equal texts.
[[nodiscard]] std::string render_body(const Expr& expr, std::span<const OperandText> operands,
                                      std::span<const std::string> results, int width, std::string_view element);
// The same in two parts: what depends on operands that are `fixed` while a loop runs stands before the loop.
struct HoistedText {
  std::string head;
  std::string body;
};
[[nodiscard]] HoistedText render_hoisted(const Expr& expr, std::span<const OperandText> operands,
                                         const std::vector<bool>& fixed, std::span<const std::string> results,
                                         int width, std::string_view element);
// The functions that bodies rendered in these widths call, guarded; empty if there are none.
[[nodiscard]] std::string render_prelude(const Expr& expr, std::span<const int> widths);
// stoker_log_W, stoker_pow_W and stoker_expm1_W alone. They need no tables in constant memory, as the drivers' own may.
[[nodiscard]] std::string render_math(int width);
// Which operands the expression reads.
[[nodiscard]] std::vector<bool> used_operands(const Expr& expr);

// "float4"; width 1 is the type alone.
[[nodiscard]] std::string vector_type(std::string_view type, int width);
// A float as a literal of OpenCL C that gives the same bits; NaN and infinities too.
[[nodiscard]] std::string literal(float value);
// What a buffer of this element type points to: "float", "int", "long", "uchar", "half".
[[nodiscard]] const char* element_type(DType dtype);
// The `width` elements at pointer + index as a floatW; their store as a statement. `aligned`: the address is a multiple
// of the vector's size.
[[nodiscard]] std::string load_text(DType dtype, const std::string& pointer, const std::string& index, int width,
                                    bool aligned);
[[nodiscard]] std::string store_text(DType dtype, const std::string& pointer, const std::string& index,
                                     const std::string& value, int width, bool aligned);

}  // namespace stoker::opencl
