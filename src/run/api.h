// How the public handles of stoker.hpp and the engine's own types hang together.
#pragma once

#include "data/dataset.h"
#include "nn/model.h"
#include "run/session.h"
#include "stoker/stoker.hpp"

namespace stoker {

struct Model::Impl {
  nn::Model model;
};

struct Data::Impl {
  std::string name;
  DatasetPtr train;
  DatasetPtr test;  // may be null
};

struct TensorAccess {
  [[nodiscard]] static Tensor wrap(nn::Net& net, Value value);
  [[nodiscard]] static Builder wrap(nn::Net& net);
  [[nodiscard]] static nn::Net& net(const Tensor& tensor);
  [[nodiscard]] static nn::Net& net(const Builder& builder);
  // The tensor as a value of `net`; an Error if it belongs to another.
  [[nodiscard]] static Value value(const nn::Net& net, const Tensor& tensor);
};

struct ModelAccess {
  [[nodiscard]] static Model wrap(nn::Model model);
  [[nodiscard]] static const nn::Model& get(const Model& model) { return model.impl_->model; }
};

struct DataAccess {
  [[nodiscard]] static Data wrap(Data::Impl data);
  [[nodiscard]] static const Data::Impl& get(const Data& data) { return *data.impl_; }
};

[[nodiscard]] Shape to_shape(const Sizes& sizes);
[[nodiscard]] Sizes to_sizes(const Shape& shape);
// An Error names an option that is out of range.
[[nodiscard]] SessionOptions to_session_options(const TrainOptions& options);
// Decides what "auto" is, and says so.
void resolve_device(const nn::Model& model, const TrainOptions& options, SessionOptions& own);

// For a session that is measured: `options` say where and how it runs; what it trains is the same for all measurements.
[[nodiscard]] SessionOptions measured_session(const nn::Model& model, const BenchOptions& options);

}  // namespace stoker
