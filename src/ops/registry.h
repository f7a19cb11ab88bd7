// The table of all ops. A family registers its ops in one function; adding a family is adding a line in registry.cpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace stoker {

// The op of that name; an Error if there is none.
[[nodiscard]] const OpDef& find_op(std::string_view name);
[[nodiscard]] std::span<const OpDef> all_ops();

namespace ops {

// Each appends the ops of one family.
void register_sources(std::vector<OpDef>& table);    // input, state, constant
void register_pointwise(std::vector<OpDef>& table);  // arithmetic, comparisons, activations, select, dropout_mask, cast
void register_reductions(std::vector<OpDef>& table);  // reduce_sum, reduce_max, argmax
void register_matmul(std::vector<OpDef>& table);      // matmul
void register_conv2d(std::vector<OpDef>& table);      // conv2d and its two gradients
void register_depthwise(std::vector<OpDef>& table);   // depthwise and its two gradients
void register_pooling(std::vector<OpDef>& table);     // max_pool, avg_pool and their gradients
void register_norm(std::vector<OpDef>& table);        // batch_norm_train, batch_norm_inference, layer_norm
void register_softmax(std::vector<OpDef>& table);     // softmax, log_softmax, softmax_cross_entropy
void register_gather(std::vector<OpDef>& table);      // gather, scatter_add
void register_movement(std::vector<OpDef>& table);    // reshape, broadcast_to, transpose, pad, slice, concat
void register_fused(std::vector<OpDef>& table);       // pointwise: the fused form

}  // namespace ops
}  // namespace stoker
