#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/fingerprint.h"

namespace olrank {

/// The values of a tensor, which must outlive it, with their type as the format names it.
struct TensorValues {
  TensorValues(std::string type, std::int64_t size, std::span<const std::byte> values)
      : dtype(std::move(type)), item_size(size), bytes(values) {}
  TensorValues(std::span<const float> values) : TensorValues("F32", 4, std::as_bytes(values)) {}
  TensorValues(const std::vector<float>& values) : TensorValues(std::span(values)) {}

  std::string dtype;       // "F32", "I64", "U8", …
  std::int64_t item_size;  // bytes
  std::span<const std::byte> bytes;
};

/// A tensor of a safetensors file; row-major.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorValues values;
};

/// Texts about a model, in the order in which they are written.
using ModelMetadata = std::vector<std::pair<std::string, std::string>>;

/// The bytes of a safetensors file: a little-endian length, a JSON header with the tensors in the order
/// given, and the values. Values of wider types come first, so that all are aligned.
std::string safetensors_bytes(std::span<const NamedTensor> tensors, const ModelMetadata& metadata);

/// The metadata of a model file with this key is the checksum of all that it holds (docs/MODELS.md,
/// Checksum).
inline constexpr std::string_view kModelChecksumKey = "olrank_checksum";
/// Such a file with its checksum as the last metadata; one that `metadata` may have is replaced.
std::string checked_safetensors_bytes(std::span<const NamedTensor> tensors, ModelMetadata metadata);
/// The fingerprint of that file without its checksum, so that it is the same as before files had one.
Fingerprint model_fingerprint(std::string_view bytes);

/// Writes such a file atomically, without a second copy of the values.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const ModelMetadata& metadata);

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

/// Reads a file whose tensors are all float32. Throws DataError as view_safetensors does, for another type,
/// and for a checksum that does not match; the metadata lose it.
SafetensorsContents parse_safetensors(std::string_view bytes, const std::string& origin);

}  // namespace olrank
