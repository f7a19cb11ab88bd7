// Checkpoints: a session's state as a safetensors file under PyTorch's names and layouts, optimizer state under the
// prefix `optimizer.`, and where training stood in the metadata. Written atomically: a kill leaves the old file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/loader.h"
#include "run/session.h"

namespace stoker {


struct CheckpointInfo {
  std::string model;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  LoaderPosition position;
  std::string optimizer;  // JSON, as is the schedule
  std::string schedule;
  std::string numerics;                      // Session::numerics_key() of the session that wrote it
  std::map<std::string, std::string> notes;  // the caller's own: data set, command line
};

void save_checkpoint(const std::filesystem::path& path, const Session& session, LoaderPosition position,
                     const std::map<std::string, std::string>& notes = {});

// The metadata alone. A file that Stoker did not write is an Error (Code::bad_file).
[[nodiscard]] CheckpointInfo read_checkpoint_info(const std::filesystem::path& path);

// All of the state. The file must be of the same model and optimizer, and hold exactly the session's states; an Error
// names what differs, and the session is as it was.
CheckpointInfo resume_checkpoint(const std::filesystem::path& path, Session& session);

struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;      // in the model, not in the file
  std::vector<std::string> extra;        // in the file, not in the model
  std::vector<std::string> wrong_shape;  // with both shapes

  [[nodiscard]] bool complete() const { return missing.empty() && extra.empty() && wrong_shape.empty(); }
};

// Parameters and statistics by name, from any safetensors file with PyTorch's names; half precision is converted.
// What does not fit is reported and left alone. Optimizer state is passed over.
LoadReport load_weights(const std::filesystem::path& path, Session& session);
// One line: "missing: a, b; wrong shape: c"; empty when the report is complete.
[[nodiscard]] std::string to_string(const LoadReport& report);

}  // namespace stoker
