#include "backends/opencl/dump.h"

#include <cstdlib>
#include <filesystem>
#include <span>

#include "backends/opencl/program.h"
#include "base/file.h"
#include "base/sha256.h"

namespace stoker::opencl {

void dump_program(const Program& program, const std::string& kernel) {
  const char* folder = std::getenv("STOKER_DUMP_PROGRAMS");
  if (folder == nullptr || *folder == '\0') return;
  const std::string source = full_source(program);
  const std::string name = program.file + "." + kernel + "." + hex(sha256(source)).substr(0, 8) + ".cl";
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  if (std::filesystem::exists(path)) return;
  const std::string text = "// kernels: " + kernel + "\n" + source;
  write_file_atomically(path, [&](const WritePart& write) { write(std::as_bytes(std::span(text))); });
}

}  // namespace stoker::opencl
