#include "core/io/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
/// What the format's own library allows.
constexpr std::uint64_t kLongestHeader = 100'000'000;

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  SafetensorsContents read() {
    const ordered_json header = parse_header();
    SafetensorsContents contents;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(entry, contents.metadata);
      } else {
        places_.push_back(place_of(name, entry));
      }
    }
    std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (Place& place : places_) {
      if (place.begin != end) {
        fail("Tensor '{}' begins at byte {} of the values, where the one before ends at {}.", place.name,
             place.begin, end);
      }
      end = place.end;
      std::vector<float> values((place.end - place.begin) / sizeof(float));
      if (!values.empty())
        std::memcpy(values.data(), values_.data() + place.begin, place.end - place.begin);
      contents.tensors.push_back({std::move(place.name), std::move(place.shape), std::move(values)});
    }
    if (end != values_.size())
      fail("The tensors end at byte {} of the values, and there are {}.", end, values_.size());
    return contents;
  }

 private:
  struct Place {
    std::string name;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw DataError(origin_, 0, 0,
                    "This is no safetensors file that can be used. " +
                        fmt::format(sentence, std::forward<Args>(args)...));
  }

  ordered_json parse_header() {
    if (bytes_.size() < kLengthBytes)
      fail("It has {} bytes, and the length of the header alone takes 8.", bytes_.size());
    std::uint64_t length = 0;
    for (std::size_t byte = kLengthBytes; byte > 0; --byte)
      length = length << 8 | static_cast<unsigned char>(bytes_[byte - 1]);
    const std::uint64_t behind = bytes_.size() - kLengthBytes;
    if (length > behind) fail("Its header should have {} bytes, and {} follow.", length, behind);
    if (length > kLongestHeader)
      fail("Its header has {} bytes, more than the format's {}.", length, kLongestHeader);
    const std::string_view text = bytes_.substr(kLengthBytes, length);
    values_ = bytes_.substr(kLengthBytes + length);
    if (text.empty() || text.front() != '{') fail("Its header does not begin with '{{'.");
    // Keys of the objects that are open, to find what is named twice: JSON readers keep one of them.
    std::vector<std::set<std::string>> keys;
    std::string twice;
    const ordered_json::parser_callback_t watch = [&](int, ordered_json::parse_event_t event,
                                                      ordered_json& parsed) {
      if (event == ordered_json::parse_event_t::object_start) keys.emplace_back();
      if (event == ordered_json::parse_event_t::object_end) keys.pop_back();
      if (event == ordered_json::parse_event_t::key) {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys.back().insert(key).second) twice = key;
      }
      return true;
    };
    ordered_json header = ordered_json::parse(text.begin(), text.end(), watch, false);
    if (!header.is_object()) fail("Its header is no JSON object.");
    if (!twice.empty()) fail("Its header names '{}' twice.", twice);
    return header;
  }

  void read_metadata(const ordered_json& entry, ModelMetadata& metadata) const {
    if (!entry.is_object()) fail("Its metadata are no JSON object.");
    for (const auto& [key, text] : entry.items()) {
      if (!text.is_string()) fail("Its metadata '{}' are no text.", key);
      metadata.emplace_back(key, text.get<std::string>());
    }
  }

  std::uint64_t natural(const std::string& name, const char* what, const ordered_json& number) const {
    if (!number.is_number_unsigned()) fail("Tensor '{}' has {} that are no natural numbers.", name, what);
    return number.get<std::uint64_t>();
  }

  Place place_of(const std::string& name, const ordered_json& entry) const {
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets")) {
      fail("Tensor '{}' is not described by dtype, shape and data_offsets.", name);
    }
    const ordered_json& type = entry["dtype"];
    if (!type.is_string() || type.get_ref<const std::string&>() != "F32")
      fail("Tensor '{}' has the dtype {}, and only \"F32\" is read.", name, type.dump());
    const ordered_json& offsets = entry["data_offsets"];
    const ordered_json& shape = entry["shape"];
    if (!shape.is_array()) fail("Tensor '{}' has a shape that is no array.", name);
    if (!offsets.is_array() || offsets.size() != 2) fail("Tensor '{}' has not two data_offsets.", name);
    Place place;
    place.name = name;
    place.begin = natural(name, "data_offsets", offsets[0]);
    place.end = natural(name, "data_offsets", offsets[1]);
    if (place.begin > place.end || place.end > values_.size()) {
      fail("Tensor '{}' lies from byte {} to {} of the values, and there are {}.", name, place.begin,
           place.end, values_.size());
    }
    // No product below overflows, as none is beyond the bytes of the file.
    const std::uint64_t count = (place.end - place.begin) / sizeof(float);
    bool empty = false;
    bool beyond = false;
    std::uint64_t product = 1;
    for (const ordered_json& number : shape) {
      const std::uint64_t extent = natural(name, "extents", number);
      if (extent > std::uint64_t{1} << 62) fail("Tensor '{}' has an extent of {}.", name, extent);
      empty = empty || extent == 0;
      beyond = beyond || (extent > 0 && product > values_.size() / extent);
      if (!beyond && extent > 0) product *= extent;
      place.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const bool fits = empty ? place.begin == place.end
                            : !beyond && product == count && place.end - place.begin == 4 * count;
    if (!fits) {
      fail("Tensor '{}' of shape {} does not take the {} bytes that its data_offsets leave it.", name,
           shape.dump(), place.end - place.begin);
    }
    return place;
  }

  std::string_view bytes_;
  std::string_view values_;
  const std::string& origin_;
  std::vector<Place> places_;
};

}  // namespace

SafetensorsContents parse_safetensors(std::string_view bytes, const std::string& origin) {
  return Reader(bytes, origin).read();
}

SafetensorsContents read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace olrank
