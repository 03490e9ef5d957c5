#include "core/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/throw_error.h"

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

constexpr std::size_t kLengthBytes = 8;

/// The length that the header has, little-endian, at the beginning of a file; 0 where the file ends before.
std::uint64_t length_in(std::string_view file) {
  std::uint64_t length = 0;
  for (std::size_t byte = file.size() < kLengthBytes ? 0 : kLengthBytes; byte > 0; --byte)
    length = length << 8 | static_cast<unsigned char>(file[byte - 1]);
  return length;
}

/// Length and header, padded so that the values are aligned to eight bytes.
std::string with_length(std::string text) {
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (std::size_t byte = 0; byte < kLengthBytes; ++byte) {
    bytes += static_cast<char>(std::uint64_t{text.size()} >> (8 * byte) & 0xFFU);
  }
  return bytes + text;
}

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
  return with_length(header.dump());
}

std::string_view text_of(const TensorValues& values) {
  return {reinterpret_cast<const char*>(values.bytes.data()), values.bytes.size()};
}

using nlohmann::ordered_json;

/// The format's own library allows headers up to this length.
constexpr std::uint64_t kLongestHeader = 100'000'000;

/// Bytes of an item of a dtype; 0 for a type that the format does not have.
std::uint64_t item_size_of(std::string_view dtype) {
  for (const char* type : {"F64", "I64", "U64"})
    if (dtype == type) return 8;
  for (const char* type : {"F32", "I32", "U32"})
    if (dtype == type) return 4;
  for (const char* type : {"F16", "BF16", "I16", "U16"})
    if (dtype == type) return 2;
  for (const char* type : {"BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2"})
    if (dtype == type) return 1;
  return 0;
}

/// Sorts them by where their values begin; of several that begin at one place, the empty ones first.
std::vector<const TensorView*> in_value_order(const std::vector<TensorView>& tensors) {
  std::vector<const TensorView*> order;
  order.reserve(tensors.size());
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->bytes.data() != b->bytes.data() ? a->bytes.data() < b->bytes.data()
                                              : a->bytes.size() < b->bytes.size();
  });
  return order;
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  SafetensorsView read() {
    const ordered_json header = parse_header();
    SafetensorsView view;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(entry, view.metadata);
      } else {
        view.tensors.push_back(tensor_of(name, entry));
      }
    }
    require_no_gaps(view.tensors);
    return view;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw DataError(
        origin_, 0, 0,
        "This is not a valid safetensors file. " + fmt::format(sentence, std::forward<Args>(args)...));
  }

  std::uint64_t begin_of(const TensorView& tensor) const {
    return static_cast<std::uint64_t>(tensor.bytes.data() - values_.data());
  }

  void require_no_gaps(const std::vector<TensorView>& tensors) const {
    std::uint64_t end = 0;
    for (const TensorView* tensor : in_value_order(tensors)) {
      if (begin_of(*tensor) != end) {
        fail("Tensor '{}' begins at byte {} of the values, but the previous tensor ends at byte {}.",
             tensor->name, begin_of(*tensor), end);
      }
      end += tensor->bytes.size();
    }
    if (end != values_.size())
      fail("The tensors end at byte {} of the values, but there are {} bytes.", end, values_.size());
  }

  ordered_json parse_header() {
    if (bytes_.size() < kLengthBytes)
      fail("It has {} bytes, but the length of the header alone takes 8.", bytes_.size());
    const std::uint64_t length = length_in(bytes_);
    const std::uint64_t behind = bytes_.size() - kLengthBytes;
    if (length > behind) fail("Its header should have {} bytes, but only {} follow.", length, behind);
    if (length > kLongestHeader)
      fail("Its header has {} bytes, but the format allows at most {}.", length, kLongestHeader);
    const std::string_view text = bytes_.substr(kLengthBytes, length);
    values_ = bytes_.substr(kLengthBytes + length);
    if (text.empty() || text.front() != '{') fail("Its header does not begin with '{{'.");
    // To the JSON parser, a NUL is the end of the text.
    if (text.find('\0') != std::string_view::npos) fail("Its header contains a NUL character.");
    std::optional<std::string> duplicate;
    ordered_json header = try_parse_json(text, duplicate);
    if (!header.is_object()) fail("Its header is not a JSON object.");
    if (duplicate) fail("Its header has the key '{}' twice.", *duplicate);
    return header;
  }

  void read_metadata(const ordered_json& entry, ModelMetadata& metadata) const {
    if (!entry.is_object()) fail("Its metadata is not a JSON object.");
    for (const auto& [key, text] : entry.items()) {
      if (!text.is_string()) fail("Its metadata '{}' is not a string.", key);
      metadata.emplace_back(key, text.get<std::string>());
    }
  }

  std::uint64_t natural(const std::string& name, const char* what, const ordered_json& number) const {
    if (!number.is_number_unsigned())
      fail("The {1} of tensor '{0}' must be non-negative integers.", name, what);
    return number.get<std::uint64_t>();
  }

  TensorView tensor_of(const std::string& name, const ordered_json& entry) const {
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets")) {
      fail("The description of tensor '{}' must have dtype, shape and data_offsets.", name);
    }
    const ordered_json& type = entry["dtype"];
    const std::uint64_t item_size = type.is_string() ? item_size_of(type.get_ref<const std::string&>()) : 0;
    if (item_size == 0) fail("Tensor '{}' has the unknown dtype {}.", name, type.dump());
    const ordered_json& offsets = entry["data_offsets"];
    const ordered_json& shape = entry["shape"];
    if (!shape.is_array()) fail("The shape of tensor '{}' is not an array.", name);
    if (!offsets.is_array() || offsets.size() != 2) fail("Tensor '{}' needs two data_offsets.", name);
    const std::uint64_t begin = natural(name, "data_offsets", offsets[0]);
    const std::uint64_t end = natural(name, "data_offsets", offsets[1]);
    if (begin > end || end > values_.size()) {
      fail("Tensor '{}' extends from byte {} to {} of the values, but there are {} bytes.", name, begin,
           end, values_.size());
    }
    TensorView tensor{name, type.get<std::string>(), {}, values_.substr(begin, end - begin)};
    // No product below overflows, as none exceeds the bytes of the file.
    bool empty = false;
    bool beyond = false;
    std::uint64_t product = 1;
    for (const ordered_json& number : shape) {
      const std::uint64_t extent = natural(name, "extents", number);
      if (extent > std::uint64_t{1} << 62) fail("Tensor '{}' has an extent of {}.", name, extent);
      empty = empty || extent == 0;
      beyond = beyond || (extent > 0 && product > values_.size() / extent);
      if (!beyond && extent > 0) product *= extent;
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const std::uint64_t bytes = end - begin;
    const bool fits =
        empty ? bytes == 0 : !beyond && bytes % item_size == 0 && product == bytes / item_size;
    if (!fits) {
      fail("Tensor '{}' of shape {} does not fit the {} bytes between its data_offsets.", name,
           shape.dump(), bytes);
    }
    return tensor;
  }

  std::string_view bytes_;
  std::string_view values_;
  const std::string& origin_;
};

/// Covers the metadata and then the tensors, both sorted by name, so that another program may write the
/// same model in another order.
Fingerprint content_checksum(ModelMetadata metadata, std::vector<TensorView> tensors) {
  Fingerprinter checksum;
  const auto add = [&](std::string_view text) { checksum.add(std::string(text) + '\0'); };
  std::sort(metadata.begin(), metadata.end());
  for (const auto& [key, text] : metadata) {
    add(key);
    add(text);
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const TensorView& tensor : tensors) {
    add(tensor.name);
    add(tensor.dtype);
    add(fmt::format("[{}]", fmt::join(tensor.shape, ", ")));
    checksum.add(tensor.bytes);
  }
  return checksum.value();
}

/// Takes the checksum out of the metadata; empty without one.
std::string take_checksum(ModelMetadata& metadata) {
  std::string taken;
  for (auto& [key, text] : metadata) {
    if (key == kModelChecksumKey) taken = std::move(text);
  }
  std::erase_if(metadata, [](const auto& entry) { return entry.first == kModelChecksumKey; });
  return taken;
}

}  // namespace

std::string checked_safetensors_bytes(std::span<const NamedTensor> tensors, ModelMetadata metadata) {
  take_checksum(metadata);
  std::vector<TensorView> views;
  for (const NamedTensor& tensor : tensors)
    views.push_back({tensor.name, tensor.values.dtype, tensor.shape, text_of(tensor.values)});
  metadata.emplace_back(kModelChecksumKey, content_checksum(metadata, std::move(views)).hex());
  return safetensors_bytes(tensors, metadata);
}

Fingerprint model_fingerprint(std::string_view bytes) {
  const std::string_view behind = bytes.substr(std::min(bytes.size(), kLengthBytes));
  std::string header(behind.substr(0, length_in(bytes)));
  const std::string_view values = behind.substr(header.size());
  const std::string entry = fmt::format(",\"{}\":\"", kModelChecksumKey);
  const std::size_t begin = header.find(entry);
  if (begin == std::string::npos) return fingerprint_of(bytes);
  header.erase(begin, entry.size() + Fingerprint().hex().size() + 1);
  header.erase(header.find_last_not_of(' ') + 1);
  Fingerprinter fingerprinter;
  fingerprinter.add(with_length(header));
  fingerprinter.add(values);
  return fingerprinter.value();
}

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

SafetensorsView view_safetensors(std::string_view bytes, const std::string& origin) {
  return Reader(bytes, origin).read();
}

SafetensorsContents parse_safetensors(std::string_view bytes, const std::string& origin) {
  SafetensorsView view = view_safetensors(bytes, origin);
  SafetensorsContents contents;
  contents.metadata = std::move(view.metadata);
  const std::string checksum = take_checksum(contents.metadata);
  if (!checksum.empty() && checksum != content_checksum(contents.metadata, view.tensors).hex())
    throw DataError(
        origin, 0, 0,
        "This model file is damaged: its checksum does not match. Restore it, or make it again; a "
        "program that has changed it has to remove 'olrank_checksum' from its metadata.");
  for (const TensorView* tensor : in_value_order(view.tensors)) {
    if (tensor->dtype != "F32") {
      throw_data_error(origin, 0, 0,
                       "This is not a valid safetensors file. Tensor '{}' has the dtype {}, but only F32 "
                       "is supported here.",
                       tensor->name, tensor->dtype);
    }
    std::vector<float> values(tensor->bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    contents.tensors.push_back({tensor->name, tensor->shape, std::move(values)});
  }
  return contents;
}

}  // namespace olrank
