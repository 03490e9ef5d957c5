#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.h"

namespace olrank {

/// What a safetensors file holds.
struct SafetensorsContents {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::vector<Tensor> tensors;  // in the order of their values
  ModelMetadata metadata;       // in the order of the header
};

/// Reads the bytes of a safetensors file whose tensors are all float32. Throws DataError, with `origin` as
/// the file, for anything that the format does not allow: lengths beyond the end, a header that is no JSON
/// object or names something twice, shapes that do not fit their offsets, gaps and overlaps.
SafetensorsContents parse_safetensors(std::string_view bytes, const std::string& origin);

SafetensorsContents read_safetensors(const std::filesystem::path& path);

}  // namespace olrank
