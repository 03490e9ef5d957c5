#pragma once

#include <string>

#include "models/files/model_file.h"

namespace olrank {

/// The bytes of a TorchScript archive, which torch.jit.load() reads in Python and torch::jit::load() in
/// C++. Its forward(docs) takes the raw float features of one query's documents, [documents × features],
/// and returns their scores in double. The parameters have the names of the model file, in modules
/// `layers.0` and so on (those of a TorchScript file in the module `module`), and the archive's extra file
/// `olrank.json` holds the metadata.
std::string torch_script_of(const LoadedModel& model);

}  // namespace olrank
