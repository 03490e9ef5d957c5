#pragma once

#include <string>
#include <vector>

#include "models/files/model_file.h"

namespace olrank {

/// A layer of weights with its place in θ.
struct ExportedLayer {
  std::string name;  // that of its tensors, without ".weight" and ".bias"
  NetworkLayer place;
};

/// Whether scores consist of exported_layers(): networks, and modules of linear layers and ReLU.
bool has_exported_layers(const LoadedModel& model);
/// The layers in the order in which scores need them. Those of a network follow each other; those of
/// `residual` are its input, W₁ and W₂ of each block, and its output.
std::vector<ExportedLayer> exported_layers(const LoadedModel& model);

/// Whether the layers are those of `residual`.
bool has_residual_blocks(const LoadedModel& model);

}  // namespace olrank
