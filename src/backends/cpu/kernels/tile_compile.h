// Turns an expression into the steps of a TileExpr: instruction selection, rates, slots and scratch offsets.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/kernels/tile.h"

namespace stoker::cpu {

class TileCompiler {
 public:
  explicit TileCompiler(TileExpr& target) : target_(target) {}
  void compile(const Expr& expr);

 private:
  // How often a value must be computed.
  enum Rate { kScalar, kChannel, kFull };

  struct Inst {
    ExprOp op = kTileCopy;
    std::array<int, 4> in = {-1, -1, -1, -1};
    float imm = 0.0F;
    Rate rate = kScalar;
    bool needed = false;
    int last_use = -1;
    int slot = -1;
  };

  void read(const Expr& expr);
  void join();
  bool join_select(Inst& inst);
  bool join_inside(Inst& inst);
  bool join_bounds(Inst& inst);
  void find_rates();
  void separate_outputs();
  void find_uses();
  void number_held_slots();
  void choose_direct_outputs();
  void emit_steps();
  void place_scratch();

  [[nodiscard]] bool is_bound(int i) const;
  [[nodiscard]] bool written_in_place(int arg, int but_not) const;
  [[nodiscard]] bool read_later(int after, const std::byte* data) const;
  void emit(const Inst& inst);
  int new_slot() { return target_.slots_++; }

  TileExpr& target_;
  std::vector<Inst> code_;
  std::vector<int> outputs_;
  std::vector<bool> direct_;
};

}  // namespace stoker::cpu
