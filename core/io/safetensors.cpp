#include "core/io/safetensors.h"

#include <cassert>
#include <nlohmann/json.hpp>

namespace olrank {

std::string safetensors_bytes(std::span<const NamedTensor> tensors, const ModelMetadata& metadata) {
  auto header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata) header["__metadata__"][key] = text;
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.values.size_bytes());
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the values lie aligned
  std::string file;
  for (int byte = 0; byte < 8; ++byte) {
    file += static_cast<char>(std::uint64_t{text.size()} >> (8 * byte) & 0xFFU);
  }
  file += text;
  for (const NamedTensor& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  return file;
}

}  // namespace olrank
