// Operands and epilogues of kernel ops as functions: which tensors an expression reads and writes, and how.
#include "backends/opencl/render.h"

#include "backends/opencl/stage_builder.h"
#include "base/error.h"
#include "ops/evaluate.h"

namespace stoker::opencl {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The parameters of a rendered family of functions, and the kernel's arguments for them.
struct Parameters {
  std::string name;
  std::string declared;
  std::string passed;
  std::vector<Arg> args;

  // Declares a tensor; its variables are `variable` and `variable`_at.
  void tensor(const std::string& variable, const Spec& spec, const Place& place, bool written) {
    declared +=
        str(", global ", written ? "" : "const ", element_type(spec.dtype), "* ", variable, ", int ", variable, "_at");
    passed += str(", ", variable, ", ", variable, "_at");
    args.push_back(Arg::tensor(place, size_of(spec.dtype)));
  }

  void integer(const std::string& variable, std::int64_t value) {
    declared += str(", int ", variable);
    passed += str(", ", variable);
    args.push_back(Arg::integer(value));
  }

  [[nodiscard]] std::string defines() const {
    return str("#define ", name, "_PARAMS ", declared, "\n#define ", name, "_PASS ", passed, "\n");
  }
};

// A tensor of an expression that has been declared.
struct Declared {
  std::string variable;
  DType dtype = DType::f32;
  Access access = Access::full;
};

OperandText operand_text(const Declared& tensor, const std::string& name, int width, bool aligned) {
  const std::string& x = tensor.variable;
  const auto spread = [&](const std::string& index) {
    const std::string value = load_text(tensor.dtype, x, index, 1, false);
    return width == 1 ? value : str("(float", width, ")(", value, ")");
  };
  const bool whole = tensor.dtype == DType::i32 || tensor.dtype == DType::i64;
  switch (tensor.access) {
    case Access::full: return {load_text(tensor.dtype, x, str(x, "_at + i"), width, aligned), {}};
    case Access::channel: return {load_text(tensor.dtype, x, str(x, "_at + c"), width, aligned), {}};
    case Access::row: return {spread(str(x, "_at + (i - c) / ", name, "_channels")), {}};
    case Access::scalar: return {spread(x + "_at"), whole ? str(x, "[", x, "_at]") : ""};
    case Access::broadcast: break;
  }
  throw std::logic_error("render: a kernel op's expression broadcasts");
}

// Declares the arguments that the expression reads; operand k of it is args[k - first].
std::vector<Declared> declare(const KernelContext& context, const Expr& expr, std::span<const FusedArg> args,
                              std::size_t first, std::int64_t channels, Parameters& parameters) {
  const std::vector<bool> used = used_operands(expr);
  std::vector<Declared> declared(args.size());
  bool rows = false;
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (k + first >= used.size() || !used[k + first]) continue;
    const Spec& spec = context.input_spec(args[k].input);
    declared[k] = {str(parameters.name, k), spec.dtype, args[k].access};
    parameters.tensor(declared[k].variable, spec, context.inputs[at(args[k].input)], false);
    rows = rows || args[k].access == Access::row;
  }
  if (rows) parameters.integer(parameters.name + "_channels", channels);
  return declared;
}

std::vector<OperandText> operand_texts(std::span<const Declared> declared, const std::string& name, int width,
                                       bool aligned) {
  std::vector<OperandText> texts;
  for (const Declared& tensor : declared)
    texts.push_back(tensor.variable.empty() ? OperandText{} : operand_text(tensor, name, width, aligned));
  return texts;
}

std::int64_t innermost(const Shape& shape) { return shape.rank() > 0 ? shape[-1] : 1; }

// The epilogue of the node, as a fusion also where there is none.
struct Epilogue {
  Expr expr = identity_expr();
  std::vector<FusedArg> extra;
  std::vector<ResultKind> results{ResultKind::store};
};

Epilogue epilogue_of(const Node& node) {
  if (!node.fusion) return {};
  return {node.fusion->epilogue, node.fusion->extra, node.fusion->results};
}

// The function that stores results; `outputs` are the stored tensors, with an empty name for a sum.
std::string epilogue_function(const Epilogue& epilogue, const Parameters& parameters,
                              std::span<const Declared> declared, std::span<const Declared> outputs, int width,
                              bool aligned) {
  const std::string& name = parameters.name;
  const std::string type = vector_type("float", width);
  std::vector<OperandText> operands{{"value", {}}};
  for (OperandText& text : operand_texts(declared, name, width, aligned)) operands.push_back(std::move(text));
  std::string sums;
  std::string stores;
  std::vector<std::string> results;
  int sum = 0;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    results.push_back(str("const ", type, " y", j));
    if (outputs[j].variable.empty()) {
      sums += str(", ", type, "* sum", sum);
      stores += str("  *sum", sum++, " += y", j, ";\n");
    } else {
      const std::string index = str(outputs[j].variable, "_at + i");
      stores += "  " + store_text(outputs[j].dtype, outputs[j].variable, index, str("y", j), width, aligned) + "\n";
    }
  }
  return str("void ", name, "_", width, "(", type, " value, int i, int c", sums, " ", name, "_PARAMS) {\n",
             render_body(epilogue.expr, operands, results, width, "i"), stores, "}\n");
}

}  // namespace

Rendered render_operand(const KernelContext& context, int operand, std::string_view name, std::span<const int> widths,
                        bool aligned) {
  Prologue prologue{identity_expr(), {{operand, Access::full}}};
  if (context.node.fusion) prologue = context.node.fusion->operands[at(operand)];
  Parameters parameters{.name = std::string(name)};
  const std::int64_t channels = innermost(operand_spec(context.graph, context.node, operand).shape);
  const std::vector<Declared> declared = declare(context, prologue.expr, prologue.args, 0, channels, parameters);
  const bool plain =
      prologue.expr.is_identity() && declared[0].dtype == DType::f32 && declared[0].access == Access::full;
  Rendered rendered{.text = render_prelude(prologue.expr, widths), .args = std::move(parameters.args)};
  rendered.text += parameters.defines() + str("#define ", name, "_PLAIN ", plain ? 1 : 0, "\n");
  for (const int width : widths) {
    const std::string type = vector_type("float", width);
    const std::string result = str("const ", type, " y");
    rendered.text += str(type, " ", name, "_", width, "(int i, int c ", name, "_PARAMS) {\n",
                         render_body(prologue.expr, operand_texts(declared, parameters.name, width, aligned),
                                     std::span(&result, 1), width, "i"),
                         "  return y;\n}\n");
  }
  return rendered;
}

Rendered render_epilogue(const KernelContext& context, std::string_view name, std::span<const int> widths,
                         bool aligned) {
  const Epilogue epilogue = epilogue_of(context.node);
  Parameters parameters{.name = std::string(name)};
  const std::int64_t channels = context.node.fusion ? innermost(epilogue_domain(context.graph, context.node))
                                                    : innermost(context.output_spec(0).shape);
  const std::vector<Declared> declared = declare(context, epilogue.expr, epilogue.extra, 1, channels, parameters);
  std::vector<Declared> outputs;
  std::string sum_args;
  int sums = 0;
  for (std::size_t j = 0; j < epilogue.results.size(); ++j) {
    if (epilogue.results[j] == ResultKind::sum_channel) {
      sum_args += str(", &sums[", sums++, "]");
      outputs.emplace_back();
      continue;
    }
    const Spec& spec = context.node.outputs[j];
    outputs.push_back({str(name, "_out", j), spec.dtype, Access::full});
    parameters.tensor(outputs.back().variable, spec, context.outputs[j], true);
  }
  const bool plain = epilogue.expr.is_identity() && sums == 0 && outputs.size() == 1 && outputs[0].dtype == DType::f32;
  Rendered rendered{.text = render_prelude(epilogue.expr, widths), .args = std::move(parameters.args)};
  rendered.text += parameters.defines() + str("#define ", name, "_PLAIN ", plain ? 1 : 0, "\n#define ", name, "_SUMS ",
                                              sums, "\n#define ", name, "_SUM_ARGS ", sum_args, "\n");
  for (const int width : widths)
    rendered.text += epilogue_function(epilogue, parameters, declared, outputs, width, aligned);
  return rendered;
}

std::vector<int> sum_outputs(const Node& node) {
  std::vector<int> outputs;
  if (!node.fusion) return outputs;
  for (std::size_t j = 0; j < node.fusion->results.size(); ++j) {
    if (node.fusion->results[j] == ResultKind::sum_channel) outputs.push_back(static_cast<int>(j));
  }
  return outputs;
}

Stage combine_sums(const KernelContext& context, const Place& partials, std::int64_t rows, std::int64_t channels) {
  const std::vector<int> sums = sum_outputs(context.node);
  const auto count = static_cast<std::int64_t>(sums.size());
  const bool cpu = context.device.is_cpu();
  const int widest = cpu ? 16 : 4;
  const int width = channels % widest == 0 ? widest : channels % 4 == 0 ? 4 : 1;
  StageBuilder stage;
  // Pointers are found where they are used: kept, they cost Mali its full occupancy.
  const std::string x = stage.pointer(DType::f32, partials, false);
  stage.integer("R", rows);
  stage.integer("C", channels);
  stage.add(str("  const int n = C * ", count, ";\n"));
  const std::string type = vector_type("float", width);
  for (std::size_t j = 0; j < sums.size(); ++j) {
    const std::string y = stage.pointer(DType::f32, context.outputs[at(sums[j])], true);
    const auto row = [&](const char* r) { return load_text(DType::f32, "p", str(r, " * n"), width, !cpu); };
    // Rows in pairs, so that loads overlap; more would cost a GPU's registers.
    stage.add(str("  FOR_ITEMS(q, C / ", width, ") {\n  const int c = q * ", width, ";\n  global const float* p = ", x,
                  " + ", j, " * C + c;\n  ", type, " sum = 0.0f;\n  int r = 0;\n  for (; r + 2 <= R; r += 2) sum += ",
                  row("r"), " + ", row("(r + 1)"), ";\n  if (r < R) sum += ", row("r"), ";\n  ",
                  store_text(DType::f32, y, "c", "sum", width, !cpu), "\n  }\n"));
  }
  const auto elements = static_cast<double>(rows * count * channels);
  return stage.finish(ceil_div(channels, width), elements, elements);
}

}  // namespace stoker::opencl
