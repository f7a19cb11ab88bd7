// What a user's program does, as small as it can be: it includes a public header and links to Stoker::stoker.
#include <cstring>

#include "stoker/error.hpp"

int main() {
  try {
    throw stoker::Error(stoker::Code::bad_file, "as a test");
  } catch (const stoker::Error& error) {
    return std::strcmp(stoker::to_string(error.code()), "bad file") == 0 ? 0 : 1;
  }
}
