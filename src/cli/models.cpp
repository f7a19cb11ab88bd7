// stoker models: what there is to choose from.
#include <iostream>

#include "cli/cli.h"
#include "cli/table.h"

namespace stoker::cli {

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
