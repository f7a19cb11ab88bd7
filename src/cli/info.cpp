// stoker devices, stoker models: what there is to choose from.
#include <iostream>

#include "cli/cli.h"
#include "cli/table.h"

namespace stoker::cli {

void add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "List the devices that can train");
  command->footer("Example:\n  stoker devices");
  command->callback([] {
    std::vector<std::vector<std::string>> rows;
    for (const Device& device : devices()) rows.push_back({device.id, device.name, device.details});
    std::cout << format_table({{"device", false}, {"name", false}, {"details", false}}, rows);
    if (rows.size() == 1) std::cout << "no OpenCL device was found:\n";
    for (const std::string& note : device_notes()) std::cout << "  " << note << "\n";
  });
}

void add_models(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the models that can be trained by name");
  command->footer("Example:\n  stoker models");
  command->callback([] {
    std::vector<std::vector<std::string>> rows;
    for (const Model& model : models()) {
      rows.push_back({model.name(), grouped(model.parameters()), shape_text(model.item()),
                      std::to_string(model.outputs()), std::to_string(model.default_batch()),
                      fixed(model.forward_flops() / 1e6, 1), model.summary()});
    }
    std::cout << format_table({{"model", false},
                               {"parameters"},
                               {"item", false},
                               {"outputs"},
                               {"batch"},
                               {"MFLOP/item"},
                               {"what it is", false}},
                              rows);
  });
}

}  // namespace stoker::cli
