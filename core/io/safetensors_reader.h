#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.h"

namespace olrank {

/// A tensor within the bytes of a safetensors file.
struct TensorView {
  std::string name;
  std::string dtype;  // "F32", "I64", …
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

/// A view shows what a safetensors file holds, without a copy of the values.
struct SafetensorsView {
  std::vector<TensorView> tensors;  // in the order of the header
  ModelMetadata metadata;           // in the order of the header
};

/// The contents are what a safetensors file of float32 tensors holds.
struct SafetensorsContents {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::vector<Tensor> tensors;  // in the order of their values
  ModelMetadata metadata;       // in the order of the header
};

/// Finds the tensors in the bytes of a safetensors file; the view points into `bytes`. Throws DataError,
/// with `origin` as the file, for anything that the format does not allow: lengths beyond the end, a header
/// that is not a JSON object or has duplicate names, shapes that do not fit their offsets, gaps and
/// overlaps.
SafetensorsView view_safetensors(std::string_view bytes, const std::string& origin);

/// Reads a file whose tensors are all float32. Throws DataError as view_safetensors does, and for another
/// type.
SafetensorsContents parse_safetensors(std::string_view bytes, const std::string& origin);

}  // namespace olrank
