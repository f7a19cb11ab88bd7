#include "backends/cpu/kernels/tile_compile.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace stoker::cpu {
namespace {

constexpr std::int64_t kLargestTile = 1024;
constexpr std::int64_t kSmallestTile = kTileLine;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

void TileCompiler::compile(const Expr& expr) {
  read(contract(expr));
  join();
  find_rates();
  separate_outputs();
  find_uses();
  number_held_slots();
  choose_direct_outputs();
  emit_steps();
  place_scratch();
}

void TileCompiler::read(const Expr& expr) {
  for (const ExprInst& inst : expr.code)
    code_.push_back({.op = inst.op, .in = {inst.a, inst.b, inst.c, -1}, .imm = inst.imm});
  outputs_.assign(expr.outputs.begin(), expr.outputs.end());
}

bool TileCompiler::is_bound(int i) const {
  return code_[at(i)].op == ExprOp::constant && !std::isnan(code_[at(i)].imm);
}

// select(a > b, c, d), and the same with <.
bool TileCompiler::join_select(Inst& inst) {
  const Inst& condition = code_[at(inst.in[0])];
  if (condition.op != ExprOp::gt && condition.op != ExprOp::lt) return false;
  const int less = condition.op == ExprOp::lt ? 1 : 0;
  inst = {.op = kTileSelectGt, .in = {condition.in[at(less)], condition.in[at(1 - less)], inst.in[1], inst.in[2]}};
  return true;
}

// x > b && x < c: where the gradient of relu6 and the like flows.
bool TileCompiler::join_inside(Inst& inst) {
  const Inst* low = &code_[at(inst.in[0])];
  const Inst* high = &code_[at(inst.in[1])];
  if (low->op == ExprOp::lt) std::swap(low, high);
  if (low->op != ExprOp::gt || high->op != ExprOp::lt || low->in[0] != high->in[0]) return false;
  inst = {.op = kTileInside, .in = {low->in[0], low->in[1], high->in[1], -1}};
  return true;
}

// maximum and minimum with constants, one after the other a clamp. A bound that is no NaN needs no test for it.
bool TileCompiler::join_bounds(Inst& inst) {
  if (is_bound(inst.in[0])) std::swap(inst.in[0], inst.in[1]);
  if (!is_bound(inst.in[1])) return false;
  const bool is_max = inst.op == ExprOp::maximum;
  const Inst& inner = code_[at(inst.in[0])];
  const bool pair = inner.op == (is_max ? kTileMinBound : kTileMaxBound);
  const int low = is_max ? inst.in[1] : inner.in[1];
  const int high = is_max ? inner.in[1] : inst.in[1];
  if (pair && code_[at(low)].imm <= code_[at(high)].imm) {
    inst = {.op = kTileClamp, .in = {inner.in[0], low, high, -1}};
  } else {
    inst.op = is_max ? kTileMaxBound : kTileMinBound;
  }
  return true;
}

void TileCompiler::join() {
  for (Inst& inst : code_) {
    if (inst.op == ExprOp::select) join_select(inst);
    if (inst.op == ExprOp::logical_and) join_inside(inst);
    if (inst.op == ExprOp::maximum || inst.op == ExprOp::minimum) join_bounds(inst);
    if (inst.op == ExprOp::pow && is_bound(inst.in[1]) && code_[at(inst.in[1])].imm == 2.0F)
      inst = {.op = ExprOp::mul, .in = {inst.in[0], inst.in[0], -1, -1}};
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

// Makes every output an instruction of its own at full rate, so that it has a tile or a destination. A sum may read an
// argument where it stands.
void TileCompiler::separate_outputs() {
  std::vector<int> seen;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const int output = outputs_[i];
    const Inst& inst = code_[at(output)];
    const bool is_sum = target_.results_[i].kind == ResultKind::sum_channel;
    const bool is_arg = inst.op == ExprOp::input;
    const bool taken = !is_sum && std::ranges::find(seen, output) != seen.end();
    const bool may_stay = is_arg ? is_sum && !written_in_place(inst.slot, -1) : !taken;
    if (!is_sum) seen.push_back(output);
    if (inst.rate == kFull && may_stay) continue;
    code_.push_back({.op = kTileCopy, .in = {output, -1, -1, -1}, .rate = kFull});
    outputs_[i] = static_cast<int>(code_.size()) - 1;
  }
}

void TileCompiler::find_uses() {
  for (const int output : outputs_) code_[at(output)].needed = true;
  for (int i = static_cast<int>(code_.size()) - 1; i >= 0; --i) {
    if (!code_[at(i)].needed) continue;
    for (const int from : code_[at(i)].in) {
      if (from < 0) continue;
      code_[at(from)].needed = true;
      code_[at(from)].last_use = std::max(code_[at(from)].last_use, i);
    }
  }
  for (const int output : outputs_) code_[at(output)].last_use = static_cast<int>(code_.size());
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
  return std::ranges::any_of(outputs_, aliases);
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
                   .imm = inst.imm});
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
  }
}

void TileCompiler::place_scratch() {
  const auto read_by_tiles = [&](int slot) {
    return std::ranges::any_of(target_.steps_, [&](const TileInst& step) {
      return step.a == slot || step.b == slot || step.c == slot || step.d == slot;
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
