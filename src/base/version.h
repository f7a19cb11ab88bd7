// Stoker's version, as in "0.1.0": of the build, not of the headers that an app was compiled with.
#pragma once

namespace stoker {

[[nodiscard]] const char* version();

}  // namespace stoker
