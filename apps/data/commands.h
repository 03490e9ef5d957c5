#pragma once

#include <memory>

#include "apps/command.h"

namespace olrank {

// The commands of `olrank data`.
std::unique_ptr<Command> make_data_inspect_command();
std::unique_ptr<Command> make_data_convert_command();
std::unique_ptr<Command> make_data_synth_command();
std::unique_ptr<Command> make_data_split_command();

}  // namespace olrank
