#include "base/error.h"

namespace stoker {

const char* to_string(Code code) {
  switch (code) {
    case Code::bad_argument: return "bad argument";
    case Code::bad_file: return "bad file";
    case Code::io: return "input/output";
    case Code::no_memory: return "out of memory";
    case Code::unsupported: return "unsupported";
    case Code::device: return "device";
    case Code::not_finite: return "not finite";
    case Code::cancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace stoker
