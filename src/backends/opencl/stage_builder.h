// StageBuilder: writes a stage's code and its arguments together: each declaration makes a variable of an argument.
#pragma once

#include <string>
#include <utility>

#include "backends/opencl/kernel.h"
#include "backends/opencl/render.h"
#include "base/error.h"

namespace stoker::opencl {

class StageBuilder {
 public:
  // `global T* name`, const unless written.
  void tensor(const std::string& name, DType dtype, const Place& place, bool written) {
    declare_pointer(name, element_type(dtype), pointer_macro(dtype), Arg::tensor(place, size_of(dtype)), written);
  }
  // The same without a variable: the text of the pointer, found anew at every use. For code with many tensors, whose
  // addresses would fill a GPU's registers.
  [[nodiscard]] std::string pointer(DType dtype, const Place& place, bool written) {
    return str(pointer_macro(dtype), "(", add_arg(Arg::tensor(place, size_of(dtype)), written), ")");
  }
  // A tensor of elements that are only moved: an integer type of their size.
  void bits(const std::string& name, int element_bytes, const Place& place, bool written) {
    const char* type = element_bytes == 1   ? "uchar"
                       : element_bytes == 2 ? "ushort"
                       : element_bytes == 4 ? "int"
                                            : "long";
    const char* macro = element_bytes == 1 ? "U8" : element_bytes == 2 ? "U16" : element_bytes == 4 ? "I32" : "I64";
    declare_pointer(name, type, macro, Arg::tensor(place, element_bytes), written);
  }
  void integer(const std::string& name, std::int64_t value) {
    add(str("  const int ", name, " = INT(", add_arg(Arg::integer(value), false), ");\n"));
  }
  void real(const std::string& name, float value) {
    add(str("  const float ", name, " = REAL(", add_arg(Arg::real(value), false), ");\n"));
  }
  void add(std::string_view text) { stage_.code += text; }
  void header(std::string_view text) { stage_.header += text; }

  // `items` work-items have something to do; the cost counts `elements` of 4 bytes that are read or written.
  [[nodiscard]] Stage finish(std::int64_t items, double flops, double elements) {
    stage_.items = items;
    stage_.cost = {.flops = flops, .bytes = 4.0 * elements};
    return std::move(stage_);
  }

 private:
  static const char* pointer_macro(DType dtype) {
    switch (dtype) {
      case DType::f32: return "F32";
      case DType::f16: return "F16";
      case DType::i32: return "I32";
      case DType::i64: return "I64";
      case DType::u8:
      case DType::b8: return "U8";
    }
    return "?";
  }

  void declare_pointer(const std::string& name, const char* type, const char* macro, const Arg& arg, bool written) {
    add(str("  global ", written ? "" : "const ", type, "* ", name, " = ", macro, "(", add_arg(arg, written), ");\n"));
  }

  int add_arg(const Arg& arg, bool written) {
    stage_.args.push_back(arg);
    stage_.written.push_back(written);
    return static_cast<int>(stage_.args.size()) - 1;
  }

  Stage stage_;
};

}  // namespace stoker::opencl
