#include "backends/cpu/kernels/tile_compile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace stoker::cpu {
namespace {

constexpr std::int64_t kLargestTile = 1024;
constexpr std::int64_t kSmallestTile = kTileLine;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

void TileCompiler::compile(const Expr& expr) {
  read(contract(expr));
  join();
  separate_outputs();
  find_uses();
  number_held_slots();
  choose_direct_outputs();
  emit_steps();
  place_scratch();
}

void TileCompiler::read(const Expr& expr) {
  for (const ExprInst& inst : expr.code)
    code_.push_back({.op = inst.op, .in = {inst.a, inst.b, inst.c, -1, -1}, .imm = inst.imm});
  outputs_.assign(expr.outputs.begin(), expr.outputs.end());
}

bool TileCompiler::is_bound(int i) const {
  return code_[at(i)].op == ExprOp::constant && !std::isnan(code_[at(i)].imm);
}

// Counts only what the outputs need: joining leaves comparisons behind that nobody reads.
void TileCompiler::count_uses() {
  uses_.assign(code_.size(), 0);
  for (const int output : outputs_) ++uses_[at(output)];
  for (std::size_t i = code_.size(); i-- > 0;) {
    if (uses_[i] == 0) continue;
    for (const int from : code_[i].in) {
      if (from >= 0) ++uses_[at(from)];
    }
  }
}

bool TileCompiler::only_here(int i, ExprOp op) const {
  return code_[at(i)].op == op && code_[at(i)].rate == kFull && uses_[at(i)] == 1;
}

// select(x > low, g, 0) and select(low < x < high, g, 0) are gates; other comparisons of two values a select_gt.
void TileCompiler::join_select(Inst& inst) {
  const Inst condition = code_[at(inst.in[0])];
  const bool zero = is_bound(inst.in[2]) && bound(inst.in[2]) == 0.0F;
  if (condition.op == kTileInside && zero) {
    inst = {
        .op = kTileGate, .in = {condition.in[0], inst.in[1], -1, -1, -1}, .imm = condition.imm, .imm2 = condition.imm2};
    return;
  }
  if (condition.op != ExprOp::gt && condition.op != ExprOp::lt) return;
  const bool less = condition.op == ExprOp::lt;
  const int large = condition.in[less ? 1 : 0];
  const int small = condition.in[less ? 0 : 1];
  if (zero && is_bound(small)) {
    inst = {.op = kTileGate, .in = {large, inst.in[1], -1, -1, -1}, .imm = bound(small), .imm2 = kInfinity};
  } else {
    inst = {.op = kTileSelectGt, .in = {large, small, inst.in[1], inst.in[2], -1}};
  }
}

// x > low && x < high: where the gradient of relu6 and the like flows.
void TileCompiler::join_inside(Inst& inst) {
  const Inst* low = &code_[at(inst.in[0])];
  const Inst* high = &code_[at(inst.in[1])];
  if (low->op == ExprOp::lt) std::swap(low, high);
  if (low->op != ExprOp::gt || high->op != ExprOp::lt || low->in[0] != high->in[0]) return;
  if (!is_bound(low->in[1]) || !is_bound(high->in[1])) return;
  inst = {.op = kTileInside,
          .in = {low->in[0], -1, -1, -1, -1},
          .imm = bound(low->in[1]),
          .imm2 = std::nextafter(bound(high->in[1]), -kInfinity)};  // x < high
}

// maximum and minimum with constants, one after the other or alone, are a clamp. A bound that is no NaN needs no test.
void TileCompiler::join_bounds(Inst& inst) {
  if (is_bound(inst.in[0])) std::swap(inst.in[0], inst.in[1]);
  if (!is_bound(inst.in[1])) return;
  const bool is_max = inst.op == ExprOp::maximum;
  const float limit = bound(inst.in[1]);
  const Inst inner = code_[at(inst.in[0])];
  inst = {.op = kTileClamp,
          .in = {inst.in[0], -1, -1, -1, -1},
          .imm = is_max ? limit : -kInfinity,
          .imm2 = is_max ? kInfinity : limit};
  if (inner.op != kTileClamp) return;
  const bool other_side =
      is_max ? inner.imm == -kInfinity && limit <= inner.imm2 : inner.imm2 == kInfinity && limit >= inner.imm;
  if (!other_side) return;
  inst.in[0] = inner.in[0];
  inst.imm = std::max(inst.imm, inner.imm);
  inst.imm2 = std::min(inst.imm2, inner.imm2);
}

// An affine value that is read only by a clamp, a gate or another mul_add is computed there.
void TileCompiler::join_affine(Inst& inst) {
  if (inst.op == kTileClamp && only_here(inst.in[0], ExprOp::mul_add)) {
    inst.op = kTileAffineClamp;
    inst.in = code_[at(inst.in[0])].in;
  } else if (inst.op == kTileGate && inst.in[0] != inst.in[1] && only_here(inst.in[0], ExprOp::mul_add)) {
    const Inst& affine = code_[at(inst.in[0])];
    inst.op = kTileAffineGate;
    inst.in = {affine.in[0], affine.in[1], affine.in[2], inst.in[1], -1};
  } else if (inst.op == ExprOp::mul_add && only_here(inst.in[2], ExprOp::mul_add)) {
    const Inst& affine = code_[at(inst.in[2])];
    inst.op = kTileMulAdd2;
    inst.in = {inst.in[0], inst.in[1], affine.in[0], affine.in[1], affine.in[2]};
  }
}

void TileCompiler::join() {
  for (Inst& inst : code_) {
    if (inst.op == ExprOp::logical_and) join_inside(inst);
    if (inst.op == ExprOp::select) join_select(inst);
    if (inst.op == ExprOp::maximum || inst.op == ExprOp::minimum) join_bounds(inst);
    if (inst.op == ExprOp::pow && is_bound(inst.in[1]) && bound(inst.in[1]) == 2.0F)
      inst = {.op = ExprOp::mul, .in = {inst.in[0], inst.in[0], -1, -1, -1}};
  }
  find_rates();
  count_uses();
  for (Inst& inst : code_) {
    if (inst.rate == kFull) join_affine(inst);
  }
}

void TileCompiler::find_rates() {
  for (Inst& inst : code_) {
    if (inst.op == ExprOp::input) {
      const Access access = target_.args_[at(inst.in[0])].access;
      inst.rate = access == Access::scalar ? kScalar : access == Access::channel ? kChannel : kFull;
      inst.slot = inst.in[0];
      inst.in[0] = -1;
    } else if (inst.op == ExprOp::uniform) {
      inst.rate = kFull;
    } else {
      for (const int i : inst.in) {
        if (i >= 0) inst.rate = std::max(inst.rate, code_[at(i)].rate);
      }
    }
  }
}

// Whether a stored result other than `but_not` stands where argument `arg` stands.
bool TileCompiler::written_in_place(int arg, int but_not) const {
  const std::byte* data = target_.args_[at(arg)].data;
  for (std::size_t i = 0; i < target_.results_.size(); ++i) {
    const TileResult& result = target_.results_[i];
    if (static_cast<int>(i) != but_not && result.kind == ResultKind::store && result.data != nullptr &&
        (data == nullptr || result.data == data))
      return true;
  }
  return false;
}

// A sum of products that nobody else reads multiplies while it adds: the product needs no tile.
bool TileCompiler::sum_factors(std::size_t output) {
  const Inst& product = code_[at(outputs_[output])];
  if (!only_here(outputs_[output], ExprOp::mul)) return false;
  for (const int factor : {product.in[0], product.in[1]}) {
    const Inst& inst = code_[at(factor)];
    if (inst.rate == kScalar || (inst.op == ExprOp::input && written_in_place(inst.slot, -1))) return false;
  }
  factors_[output] = product.in[1];
  outputs_[output] = product.in[0];
  return true;
}

// Makes every output an instruction of its own at full rate, so that it has a tile or a destination. A sum may read an
// argument where it stands.
void TileCompiler::separate_outputs() {
  std::vector<int> seen;
  factors_.assign(outputs_.size(), -1);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (target_.results_[i].kind == ResultKind::sum_channel && sum_factors(i)) continue;
    const int output = outputs_[i];
    const Inst& inst = code_[at(output)];
    const bool is_sum = target_.results_[i].kind == ResultKind::sum_channel;
    const bool is_arg = inst.op == ExprOp::input;
    const bool taken = !is_sum && std::ranges::find(seen, output) != seen.end();
    const bool may_stay = is_arg ? is_sum && !written_in_place(inst.slot, -1) : !taken;
    if (!is_sum) seen.push_back(output);
    if (inst.rate == kFull && may_stay) continue;
    code_.push_back({.op = kTileCopy, .in = {output, -1, -1, -1, -1}, .rate = kFull});
    outputs_[i] = static_cast<int>(code_.size()) - 1;
  }
}

void TileCompiler::find_uses() {
  const auto for_results = [&](const auto& act) {
    for (const int output : outputs_) act(code_[at(output)]);
    for (const int factor : factors_) {
      if (factor >= 0) act(code_[at(factor)]);
    }
  };
  for_results([](Inst& inst) { inst.needed = true; });
  for (int i = static_cast<int>(code_.size()) - 1; i >= 0; --i) {
    if (!code_[at(i)].needed) continue;
    for (const int from : code_[at(i)].in) {
      if (from < 0) continue;
      code_[at(from)].needed = true;
      code_[at(from)].last_use = std::max(code_[at(from)].last_use, i);
    }
  }
  for_results([&](Inst& inst) { inst.last_use = static_cast<int>(code_.size()); });
}

// Slots of what lasts for a rectangle: arguments come first, then constants, scalar and channel values.
void TileCompiler::number_held_slots() {
  target_.slots_ = static_cast<int>(target_.args_.size());
  for (Inst& inst : code_) {
    if (!inst.needed || inst.op != ExprOp::constant) continue;
    inst.slot = new_slot();
    target_.constants_.push_back(inst.imm);
    target_.lines_.push_back({.slot = inst.slot});
  }
  for (Inst& inst : code_) {
    if (!inst.needed || inst.op == ExprOp::constant) continue;
    if (inst.op != ExprOp::input && inst.rate != kFull) inst.slot = new_slot();
    if (inst.rate == kScalar) target_.lines_.push_back({.slot = inst.slot});
    if (inst.rate == kChannel) target_.channels_.push_back({.slot = inst.slot});
    if (inst.op == ExprOp::input && inst.rate == kFull) {
      const TileArg& arg = target_.args_[at(inst.slot)];
      if (arg.access == Access::row || arg.dtype != DType::f32) target_.tiles_.push_back({.slot = inst.slot});
    }
  }
  target_.first_result_slot_ = target_.slots_;
  target_.slots_ += static_cast<int>(target_.results_.size());
}

// Whether an instruction after `after`, or a sum at the end, reads an argument at `data` (or one not known yet).
bool TileCompiler::read_later(int after, const std::byte* data) const {
  const auto aliases = [&](int i) {
    if (i < 0 || code_[at(i)].op != ExprOp::input || code_[at(i)].rate != kFull) return false;
    const std::byte* other = target_.args_[at(code_[at(i)].slot)].data;
    return other == nullptr || other == data;
  };
  for (std::size_t i = at(after) + 1; i < code_.size(); ++i) {
    if (code_[i].needed && std::ranges::any_of(code_[i].in, aliases)) return true;
  }
  return std::ranges::any_of(outputs_, aliases) || std::ranges::any_of(factors_, aliases);
}

// A result goes straight to its destination if that is f32 and nobody reads an argument there afterwards.
void TileCompiler::choose_direct_outputs() {
  direct_.assign(outputs_.size(), false);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const TileResult& result = target_.results_[i];
    Inst& inst = code_[at(outputs_[i])];
    if (result.kind != ResultKind::store || result.dtype != DType::f32) continue;
    if (result.data != nullptr && read_later(outputs_[i], result.data)) continue;
    direct_[i] = true;
    inst.slot = target_.first_result_slot_ + static_cast<int>(i);
  }
}

void TileCompiler::emit(const Inst& inst) {
  const auto slot_of = [&](int i) { return i < 0 ? -1 : code_[at(i)].slot; };
  auto& steps = inst.rate == kScalar    ? target_.scalar_steps_
                : inst.rate == kChannel ? target_.channel_steps_
                                        : target_.steps_;
  steps.push_back({.op = inst.op,
                   .destination = inst.slot,
                   .a = slot_of(inst.in[0]),
                   .b = slot_of(inst.in[1]),
                   .c = slot_of(inst.in[2]),
                   .d = slot_of(inst.in[3]),
                   .e = slot_of(inst.in[4]),
                   .imm = inst.imm,
                   .imm2 = inst.imm2});
}

// In order; a temporary's tile is free for the instruction that reads it last (elements do not cross).
void TileCompiler::emit_steps() {
  std::vector<int> free;
  for (int i = 0; i < static_cast<int>(code_.size()); ++i) {
    Inst& inst = code_[at(i)];
    if (!inst.needed || inst.op == ExprOp::input || inst.op == ExprOp::constant) continue;
    for (std::size_t k = 0; k < inst.in.size(); ++k) {
      if (inst.in[k] < 0 || std::find(inst.in.begin(), inst.in.begin() + static_cast<std::ptrdiff_t>(k), inst.in[k]) !=
                                inst.in.begin() + static_cast<std::ptrdiff_t>(k))
        continue;
      const Inst& from = code_[at(inst.in[k])];
      const bool temporary = from.rate == kFull && from.op != ExprOp::input &&
                             from.slot >= target_.first_result_slot_ + static_cast<int>(target_.results_.size());
      if (temporary && from.last_use == i) free.push_back(from.slot);
    }
    if (inst.slot < 0) {
      if (free.empty()) {
        free.push_back(new_slot());
        target_.tiles_.push_back({.slot = free.back()});
      }
      inst.slot = free.back();
      free.pop_back();
    }
    emit(inst);
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const int slot = code_[at(outputs_[i])].slot;
    const bool copied =
        !direct_[i] && target_.results_[i].kind == ResultKind::store && target_.results_[i].dtype == DType::f32;
    if (copied)
      target_.steps_.push_back(
          {.op = kTileCopy, .destination = target_.first_result_slot_ + static_cast<int>(i), .a = slot});
    target_.result_slots_.push_back(copied || direct_[i] ? -1 : slot);
    target_.factor_slots_.push_back(factors_[i] < 0 ? -1 : code_[at(factors_[i])].slot);
  }
}

void TileCompiler::place_scratch() {
  const auto read_by_tiles = [&](int slot) {
    return std::ranges::any_of(target_.steps_, [&](const TileInst& step) {
      return step.a == slot || step.b == slot || step.c == slot || step.d == slot || step.e == slot;
    });
  };
  constexpr auto kFloatsPerSlot = static_cast<std::int64_t>(sizeof(TileOperand) / sizeof(float));
  std::int64_t next = (target_.slots_ * kFloatsPerSlot + kTileLine - 1) / kTileLine * kTileLine;
  for (TileExpr::Held& line : target_.lines_) {
    line.compact = next;
    next += kTileLine;
  }
  std::int64_t tiles = static_cast<std::int64_t>(target_.tiles_.size());
  for (TileExpr::Held& held : target_.channels_) {
    held.expanded = read_by_tiles(held.slot) ? 0 : -1;
    tiles += held.expanded < 0 ? 1 : 2;
  }
  const std::int64_t room = kTileScratchBytes / static_cast<std::int64_t>(sizeof(float)) - next;
  const std::int64_t fits = room / std::max<std::int64_t>(tiles, 1) / kTileLine * kTileLine - kTileLine;
  require(fits >= kSmallestTile, Code::bad_argument, "expression: too many values for a tile: ", tiles);
  target_.tile_ = std::min(kLargestTile, fits);
  // A line between tiles: at a distance of 4096 bytes a load would wait for an unrelated store.
  const auto place = [&] { return std::exchange(next, next + target_.tile_ + kTileLine); };
  for (TileExpr::Held& held : target_.tiles_) held.compact = place();
  for (TileExpr::Held& held : target_.channels_) {
    held.compact = place();
    if (held.expanded == 0) held.expanded = place();
  }
}

}  // namespace stoker::cpu
