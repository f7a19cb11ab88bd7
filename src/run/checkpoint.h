// Checkpoints: a session's state as a safetensors file under PyTorch's names and layouts, optimizer state under the
// prefix `optimizer.`, and where training stood in the metadata. Written atomically: a kill leaves the old file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "run/session.h"
#include "stoker/stoker.hpp"

namespace stoker {

void save_checkpoint(const std::filesystem::path& path, const Session& session, LoaderPosition position,
                     const std::map<std::string, std::string>& notes = {});

// All of the state. The file must be of the same model, optimizer and seed, and hold exactly the session's states; an
// Error names what differs, and the session is as it was.
CheckpointInfo resume_checkpoint(const std::filesystem::path& path, Session& session);

// Parameters and statistics by name, from any safetensors file with PyTorch's names; half precision is converted.
// What does not fit is reported and left alone. Optimizer state is passed over.
LoadReport load_weights(const std::filesystem::path& path, Session& session);
// Parameters and statistics, all of them: an Error names what is missing or does not fit, and nothing is loaded.
void load_all_weights(const std::filesystem::path& path, Session& session);

// Single states in PyTorch's layout.
[[nodiscard]] Shape file_shape(const StateVar& state);
[[nodiscard]] std::vector<float> read_in_file_layout(const Session& session, const StateVar& state);
void write_from_file_layout(Session& session, const StateVar& state, std::span<const float> values);

// One line: "missing: a, b; wrong shape: c"; empty when the report is complete.
[[nodiscard]] std::string to_string(const LoadReport& report);

}  // namespace stoker
