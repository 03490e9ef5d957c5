#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace olrank {

/// A tensor of a model file; float32, row-major.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

/// Texts about a model, in the order in which they are written.
using ModelMetadata = std::vector<std::pair<std::string, std::string>>;

/// The bytes of a safetensors file: a little-endian length, a JSON header, the values.
std::string safetensors_bytes(std::span<const NamedTensor> tensors, const ModelMetadata& metadata);

}  // namespace olrank
