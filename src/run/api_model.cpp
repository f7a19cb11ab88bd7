// Models and data sets of the public API.
#include <algorithm>

#include "base/error.h"
#include "data/open.h"
#include "ops/cost.h"
#include "run/api.h"

namespace stoker {

Model ModelAccess::wrap(nn::Model model) {
  Model wrapped;
  wrapped.impl_ = std::make_shared<const Model::Impl>(Model::Impl{std::move(model)});
  return wrapped;
}

Model Model::named(const std::string& name) { return ModelAccess::wrap(nn::find_model(name)); }
Model Model::layers(const Sizes& sizes) { return ModelAccess::wrap(nn::layers_model(sizes)); }

Model Model::custom(const std::string& name, const Sizes& item, std::int64_t outputs, BuildFunction build) {
  require(build != nullptr, Code::bad_argument, "model ", name, " has no function to build it");
  require(!item.empty() && std::ranges::all_of(item, [](std::int64_t size) { return size > 0; }) && outputs > 0,
          Code::bad_argument, "model ", name, ": the item's sizes and the outputs must be at least 1");
  const auto forward = [name, outputs, build = std::move(build)](nn::Net& net, Value x) {
    const std::int64_t count = net.builder().shape(x)[0];
    Builder builder = TensorAccess::wrap(net);
    const Value y = TensorAccess::value(net, build(builder, TensorAccess::wrap(net, x)));
    require(net.builder().shape(y) == Shape{count, outputs}, Code::bad_argument, "model ", name, " should give ",
            Shape{count, outputs}, ", but gives ", net.builder().shape(y));
    return y;
  };
  return ModelAccess::wrap({.name = name,
                            .summary = "a network of the caller's",
                            .item = to_shape(item),
                            .outputs = outputs,
                            .forward = forward});
}

const std::string& Model::name() const { return impl_->model.name; }
const std::string& Model::summary() const { return impl_->model.summary; }
Sizes Model::item() const { return to_sizes(impl_->model.item); }
std::int64_t Model::outputs() const { return impl_->model.outputs; }
std::int64_t Model::default_batch() const { return impl_->model.default_batch; }
std::int64_t Model::parameters() const { return nn::parameter_count(impl_->model); }

double Model::forward_flops() const {
  GraphBuilder builder;
  nn::Net net(builder, false);
  Shape shape{1};
  for (const std::int64_t size : impl_->model.item.dims()) shape.push_back(size);
  impl_->model.forward(net, ops::input(builder, "x", {DType::f32, shape}));
  double flops = 0;
  for (const Node& node : builder.graph().nodes) flops += cost_of(builder.graph(), node).flops;
  return flops;
}

std::vector<Model> models() {
  std::vector<Model> list;
  for (const nn::Model& model : nn::zoo()) list.push_back(ModelAccess::wrap(model));
  return list;
}

Data DataAccess::wrap(Data::Impl data) {
  Data wrapped;
  wrapped.impl_ = std::make_shared<const Data::Impl>(std::move(data));
  return wrapped;
}

Data Data::open(const std::string& name, const OpenOptions& options) {
  TrainAndTest sets = open_dataset(name, {.seed = options.seed,
                                          .train_items = options.train_items,
                                          .test_items = options.test_items,
                                          .item_shape = to_shape(options.item),
                                          .classes = options.classes,
                                          .limit = options.limit,
                                          .csv_scale = options.csv_scale});
  return DataAccess::wrap({name, std::move(sets.train), std::move(sets.test)});
}

Data Data::arrays(std::span<const float> items, std::span<const std::int32_t> labels, const Sizes& item) {
  require(!labels.empty(), Code::bad_argument, "the arrays are empty: there are no labels");
  const auto [least, most] = std::ranges::minmax(labels);
  require(least >= 0, Code::bad_argument, "labels must not be negative, as ", least, " is");
  return DataAccess::wrap({"arrays", wrap_arrays(items, labels, to_shape(item), most + 1), nullptr});
}

Data Data::with_test(const Data& test) const { return DataAccess::wrap({name(), impl_->train, test.impl_->train}); }

const std::string& Data::name() const { return impl_->name; }
Sizes Data::item() const { return to_sizes(impl_->train->item_shape()); }
int Data::classes() const { return impl_->train->classes(); }
std::int64_t Data::train_items() const { return impl_->train->size(); }
std::int64_t Data::test_items() const { return impl_->test ? impl_->test->size() : 0; }

std::int32_t Data::item_at(std::int64_t index, std::span<float> item) const {
  const Dataset& data = impl_->test ? *impl_->test : *impl_->train;
  std::int32_t label = 0;
  data.get(index, item, label);
  return label;
}

}  // namespace stoker
