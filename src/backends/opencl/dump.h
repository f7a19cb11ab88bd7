// Dump: for contributors, every program that a process builds as a file in the folder $STOKER_DUMP_PROGRAMS. Without
// the variable nothing happens.
#pragma once

#include <string>

#include "backends/opencl/kernel.h"

namespace stoker::opencl {

// FILE.KERNEL.HASH.cl: a line "// kernels: KERNEL", then the source. tools/phones/table reads these.
void dump_program(const Program& program, const std::string& kernel);

}  // namespace stoker::opencl
