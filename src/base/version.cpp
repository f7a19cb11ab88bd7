#include "base/version.h"

namespace stoker {

const char* version() { return STOKER_VERSION; }

}  // namespace stoker
