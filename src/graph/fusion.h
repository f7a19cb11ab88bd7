// Fusion: the pointwise work that a kernel op takes along (DESIGN, decision 7). Each operand may have a prologue, an
// expression evaluated while the operand is loaded; the result may have an epilogue, an expression whose values are
// each stored or summed per channel. Padding is zero *after* the prologue.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/expr.h"

namespace stoker {

// How an expression's tensor is indexed relative to the tensor it goes with, of shape [..., C].
enum class Access : std::uint8_t {
  full,       // the same shape
  channel,    // [C]: by the innermost position
  row,        // [..., 1]: by all but the innermost position
  scalar,     // one element
  broadcast,  // any other shape that broadcasts; `pointwise` nodes only
};

[[nodiscard]] const char* to_string(Access access);

struct FusedArg {
  int input = 0;  // index into Node::inputs
  Access access = Access::full;

  friend bool operator==(const FusedArg&, const FusedArg&) = default;
};

// What an operand is before the kernel op sees it: expr(args). The default is the tensor itself.
struct Prologue {
  Expr expr = identity_expr();
  std::vector<FusedArg> args;

  friend bool operator==(const Prologue&, const Prologue&) = default;
};

enum class ResultKind : std::uint8_t {
  store,        // the value itself
  sum_channel,  // its sum over all but the innermost dimension: [C]
};

struct Fusion {
  std::vector<Prologue> operands;   // one for each operand of the kernel op; none for `pointwise`
  Expr epilogue = identity_expr();  // operand 0 is the kernel op's plain result, operand i > 0 is extra[i - 1];
                                    // in a `pointwise` node there is no plain result and operand i is extra[i]
  std::vector<FusedArg> extra;
  std::vector<ResultKind> results;  // one for each output of the expression, and of the node

  friend bool operator==(const Fusion&, const Fusion&) = default;
};

}  // namespace stoker
