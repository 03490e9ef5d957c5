#include "core/io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/io/atomic_file.h"

namespace olrank {
namespace {

using Order = std::vector<const NamedTensor*>;

/// Wider types first, otherwise in the order given.
Order values_order(std::span<const NamedTensor> tensors) {
  Order order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return a->values.item_size > b->values.item_size;
  });
  return order;
}

/// Length and header, padded so that the values are aligned to eight bytes.
std::string header_of(std::span<const NamedTensor> tensors, const Order& order,
                      const ModelMetadata& metadata) {
  auto header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata) header["__metadata__"][key] = text;
  for (const NamedTensor& tensor : tensors) header[tensor.name] = nullptr;  // fixes the order of names
  std::size_t offset = 0;
  for (const NamedTensor* tensor : order) {
    const std::size_t end = offset + tensor->values.bytes.size();
    header[tensor->name] = {
        {"dtype", tensor->values.dtype}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) {
    bytes += static_cast<char>(std::uint64_t{text.size()} >> (8 * byte) & 0xFFU);
  }
  return bytes + text;
}

std::string_view text_of(const TensorValues& values) {
  return {reinterpret_cast<const char*>(values.bytes.data()), values.bytes.size()};
}

}  // namespace

std::string safetensors_bytes(std::span<const NamedTensor> tensors, const ModelMetadata& metadata) {
  const Order order = values_order(tensors);
  std::string file = header_of(tensors, order, metadata);
  for (const NamedTensor* tensor : order) file.append(text_of(tensor->values));
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const ModelMetadata& metadata) {
  const Order order = values_order(tensors);
  AtomicFile file(path);
  file.write(header_of(tensors, order, metadata));
  for (const NamedTensor* tensor : order) file.write(text_of(tensor->values));
  file.commit();
}

}  // namespace olrank
