#include "core/io/state_archive.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/safetensors_reader.h"

namespace olrank {
namespace {

/// Version 1 was a binary format of its own, which began with these letters.
constexpr std::string_view kFirstFormat = "olrankst";
constexpr std::string_view kFormatVersion = "2";
constexpr std::string_view kVersionKey = "olrank_state";
constexpr std::string_view kChecksumKey = "checksum";
constexpr char kRepeated = '#';

/// As safetensors names it: "F64", "I8", …
std::string dtype_of(char type, std::size_t item_size) {
  return fmt::format("{}{}", type == 'f' ? 'F' : type == 'i' ? 'I' : 'U', 8 * item_size);
}

/// In front of each entry's name and values in what a fingerprint is made of.
struct EntryHeader {
  std::uint64_t count = 0;
  std::uint16_t name_size = 0;
  std::uint8_t type = 0;
  std::uint8_t item_size = 0;
  std::uint32_t unused = 0;
};
static_assert(sizeof(EntryHeader) == 16);

void add_entry(Fingerprinter& fingerprinter, std::string_view name, char type, std::size_t item_size,
               std::size_t count, const char* values) {
  const EntryHeader header{count, static_cast<std::uint16_t>(name.size()), static_cast<std::uint8_t>(type),
                           static_cast<std::uint8_t>(item_size), 0};
  fingerprinter.add(&header, sizeof header);
  fingerprinter.add(name);
  fingerprinter.add(values, count * item_size);
}

std::string text_of(const ModelMetadata& metadata, std::string_view key) {
  for (const auto& [known, text] : metadata) {
    if (known == key) return text;
  }
  return {};
}

}  // namespace

void StateWriter::put_bytes(std::string_view name, char type, std::size_t size, const void* data,
                            std::size_t count) {
  assert(!name.empty() && name.find(kRepeated) == std::string_view::npos);
  entries_.push_back({std::string(name), type, static_cast<std::uint8_t>(size), values_.size(), count});
  if (count > 0) values_.append(static_cast<const char*>(data), count * size);
}

Fingerprint StateWriter::fingerprint() const {
  Fingerprinter fingerprinter;
  for (const Entry& entry : entries_) {
    add_entry(fingerprinter, entry.name, entry.type, entry.item_size, entry.count,
              values_.data() + entry.begin);
  }
  return fingerprinter.value();
}

std::vector<NamedTensor> StateWriter::tensors() const {
  std::vector<NamedTensor> tensors;
  std::map<std::string_view, int> times;
  const auto values = std::as_bytes(std::span(values_));
  for (const Entry& entry : entries_) {
    const int time = ++times[entry.name];
    tensors.push_back({time == 1 ? entry.name : fmt::format("{}{}{}", entry.name, kRepeated, time),
                       {static_cast<std::int64_t>(entry.count)},
                       {dtype_of(entry.type, entry.item_size), entry.item_size,
                        values.subspan(entry.begin, entry.count * entry.item_size)}});
  }
  return tensors;
}

ModelMetadata StateWriter::metadata() const {
  return {{std::string(kVersionKey), std::string(kFormatVersion)},
          {std::string(kChecksumKey), fingerprint().hex()}};
}

std::string StateWriter::bytes() const {
  return safetensors_bytes(tensors(), metadata());
}

void StateWriter::write(const std::filesystem::path& path) const {
  write_safetensors(path, tensors(), metadata());
}

StateReader::StateReader(std::string bytes, std::string origin, std::string_view restart)
    : bytes_(std::move(bytes)), origin_(std::move(origin)) {
  const auto refuse_version = [&](std::string_view version) {
    fail(
        fmt::format("This checkpoint has format version {}, but this olrank reads version {}. To continue, "
                    "use the olrank "
                    "that wrote it, or {}.",
                    version, kFormatVersion, restart));
  };
  if (bytes_.starts_with(kFirstFormat)) refuse_version("1");
  SafetensorsView view;
  try {
    view = view_safetensors(bytes_, origin_);
  } catch (const DataError& error) {
    throw IoError(fmt::format("{} To continue, {}.", error.what(), restart));
  }
  const std::string version = text_of(view.metadata, kVersionKey);
  if (version.empty()) fail(fmt::format("This is not a checkpoint of olrank. To continue, {}.", restart));
  if (version != kFormatVersion) refuse_version(version);
  Fingerprinter fingerprinter;
  for (TensorView& tensor : view.tensors) {
    Entry entry;
    entry.name = tensor.name.substr(0, tensor.name.find(kRepeated));
    entry.dtype = std::move(tensor.dtype);
    entry.begin = static_cast<std::size_t>(tensor.bytes.data() - bytes_.data());
    entry.size = tensor.bytes.size();
    entry.count = 1;
    for (const std::int64_t extent : tensor.shape) entry.count *= static_cast<std::size_t>(extent);
    const char type = static_cast<char>(entry.dtype.front() - 'A' + 'a');
    const auto item_size = std::strtoul(entry.dtype.c_str() + 1, nullptr, 10) / 8;
    add_entry(fingerprinter, entry.name, type, item_size, entry.count, tensor.bytes.data());
    entries_.push_back(std::move(entry));
  }
  if (fingerprinter.value().hex() != text_of(view.metadata, kChecksumKey)) {
    fail(fmt::format("This checkpoint is damaged: its checksum does not match. To continue, {}.", restart));
  }
}

void StateReader::fail(std::string_view sentence) const {
  throw IoError(fmt::format("{}: {}", origin_, sentence));
}

const StateReader::Entry& StateReader::entry_here(std::string_view name) const {
  if (next_ == entries_.size()) {
    fail(fmt::format("The state ends where '{}' is expected: it belongs to another ranker or version.",
                     name));
  }
  return entries_[next_];
}

const StateReader::Entry& StateReader::next(std::string_view name, char type, std::size_t item_size) {
  const Entry& entry = entry_here(name);
  const std::string dtype = dtype_of(type, item_size);
  if (entry.name != name || entry.dtype != dtype) {
    fail(
        fmt::format("The state has '{}' ({}) where '{}' ({}) is expected: it belongs to another ranker or "
                    "version.",
                    entry.name, entry.dtype, name, dtype));
  }
  ++next_;
  return entry;
}

void StateReader::skip_to(std::string_view name) {
  while (entry_here(name).name != name) ++next_;
}

void StateReader::require_count(std::string_view name, const Entry& entry, std::size_t count) const {
  if (entry.count == count) return;
  fail(fmt::format("The state has {} values of '{}' instead of {}: it belongs to another shape.",
                   entry.count, name, count));
}

void StateReader::copy(const Entry& entry, void* target) const {
  if (entry.size > 0) std::memcpy(target, bytes_.data() + entry.begin, entry.size);
}

std::string StateReader::get_text(std::string_view name) {
  const std::vector<char> letters = get<char>(name);
  return {letters.begin(), letters.end()};
}

void StateReader::require_end() const {
  if (next_ == entries_.size()) return;
  fail(
      fmt::format("The state has '{}', which this ranker does not know: it belongs to another ranker or "
                  "version.",
                  entries_[next_].name));
}

StateReader read_state_file(const std::filesystem::path& path, std::string_view restart) {
  return StateReader(read_file(path), path.string(), restart);
}

}  // namespace olrank
