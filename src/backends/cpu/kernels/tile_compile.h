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
    std::array<int, 5> in = {-1, -1, -1, -1, -1};
    float imm = 0.0F;
    float imm2 = 0.0F;
    Rate rate = kScalar;
    bool needed = false;
    int last_use = -1;
    int slot = -1;
  };

  void read(const Expr& expr);
  void join();
  void join_select(Inst& inst);
  void join_inside(Inst& inst);
  void join_bounds(Inst& inst);
  void join_affine(Inst& inst);
  void find_rates();
  void separate_outputs();
  bool sum_factors(std::size_t output);
  void find_uses();
  void number_held_slots();
  void choose_direct_outputs();
  void emit_steps();
  void place_scratch();

  [[nodiscard]] bool is_bound(int i) const;
  [[nodiscard]] float bound(int i) const { return code_[static_cast<std::size_t>(i)].imm; }
  void count_uses();
  [[nodiscard]] bool only_here(int i, ExprOp op) const;
  [[nodiscard]] bool written_in_place(int arg, int but_not) const;
  [[nodiscard]] bool read_later(int after, const std::byte* data) const;
  void emit(const Inst& inst);
  int new_slot() { return target_.slots_++; }

  TileExpr& target_;
  std::vector<Inst> code_;
  std::vector<int> uses_;  // before joining: how many instructions and outputs read each
  std::vector<int> outputs_;
  std::vector<int> factors_;  // of a sum of products: the second factor of each output, or -1
  std::vector<bool> direct_;
};

}  // namespace stoker::cpu
