// The models of the zoo that have a file of their own; model.cpp lists them all.
#pragma once

#include "nn/model.h"

namespace stoker::nn {

[[nodiscard]] Model lenet5();
[[nodiscard]] Model mobilenet_v2_32();
[[nodiscard]] Model resnet18_32();

}  // namespace stoker::nn
