#include "core/io/state_archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// Version 1 was a binary format of its own, which began with these letters.
constexpr std::string_view kFirstFormat = "olrankst";
constexpr std::string_view kFormatVersion = "2";
/// An archive of this version has values in block files.
constexpr std::string_view kBlockVersion = "3";
constexpr std::string_view kBlocksKey = "blocks";
constexpr std::string_view kBlocksChecksumKey = "blocks_checksum";
constexpr std::size_t kMostBlockFiles = 100;
constexpr std::size_t kMostZerosPerByte = 128;
constexpr std::string_view kVersionKey = "olrank_state";
constexpr std::string_view kChecksumKey = "checksum";
constexpr char kRepeated = '#';

/// Names it as safetensors does: "F64", "I8", …
std::string dtype_of(char type, std::size_t item_size) {
  return fmt::format("{}{}", type == 'f' ? 'F' : type == 'i' ? 'I' : 'U', 8 * item_size);
}

/// It precedes each entry's name and values in what a fingerprint is made of.
struct EntryHeader {
  std::uint64_t count = 0;
  std::uint16_t name_size = 0;
  std::uint8_t type = 0;
  std::uint8_t item_size = 0;
  std::uint32_t unused = 0;
};
static_assert(sizeof(EntryHeader) == 16);

/// Adds what precedes an entry's values.
void add_header(Fingerprinter& fingerprinter, std::string_view name, char type, std::size_t item_size,
                std::size_t count) {
  const EntryHeader header{count, static_cast<std::uint16_t>(name.size()), static_cast<std::uint8_t>(type),
                           static_cast<std::uint8_t>(item_size), 0};
  fingerprinter.add(&header, sizeof header);
  fingerprinter.add(name);
}

void add_entry(Fingerprinter& fingerprinter, std::string_view name, char type, std::size_t item_size,
               std::size_t count, const void* values) {
  add_header(fingerprinter, name, type, item_size, count);
  fingerprinter.add(values, count * item_size);
}

/// The first bytes of a file; fewer if it is shorter.
std::string read_prefix(const std::filesystem::path& path, std::size_t bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) throw IoError("read", path.string(), errno);
  std::string read(std::min(bytes, static_cast<std::size_t>(status.st_size)), '\0');
  for (std::size_t at = 0; at < read.size();) {
    const ssize_t got = ::read(file.number(), read.data() + at, read.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("read", path.string(), errno);
    if (got == 0) read.resize(at);
    at += static_cast<std::size_t>(got);
  }
  return read;
}

std::string metadata_text(const ModelMetadata& metadata, std::string_view key) {
  for (const auto& [known, text] : metadata) {
    if (known == key) return text;
  }
  return {};
}

}  // namespace

std::span<const std::string> block_file_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (std::size_t number = 0; number < kMostBlockFiles; ++number)
      made.push_back(fmt::format("blocks-{:02}.bin", number));
    return made;
  }();
  return names;
}

void StateWriter::put_bytes(std::string_view name, char type, std::size_t size, const void* data,
                            std::size_t count) {
  assert(!name.empty() && name.find(kRepeated) == std::string_view::npos);
  if (digest_) {
    add_entry(*digest_, name, type, size, count, data);
    digested_bytes_ += static_cast<std::int64_t>(count * size);
    return;
  }
  entries_.push_back({.name = std::string(name),
                      .type = type,
                      .item_size = static_cast<std::uint8_t>(size),
                      .begin = values_.size(),
                      .count = count});
  if (count > 0) values_.append(static_cast<const char*>(data), count * size);
}

void StateWriter::put_growing_bytes(std::string_view name, char type, std::size_t size,
                                    const Lineage& lineage, const GrowingSource& source,
                                    std::size_t settled, std::span<const std::byte> open,
                                    std::size_t zeros) {
  const std::size_t bytes = settled * size;
  const std::size_t count = settled + open.size() / size + zeros;
  if (digest_) {
    add_header(*digest_, name, type, size, count);
    const auto add = [&](std::span<const std::byte> piece) { digest_->add(piece); };
    if (bytes > 0) source.pass(0, bytes, add);
    add(open);
    static constexpr std::array<std::byte, 4096> kZeros{};
    for (std::size_t left = zeros * size; left > 0;) {
      const std::size_t piece = std::min(left, kZeros.size());
      add(std::span(kZeros).first(piece));
      left -= piece;
    }
    digested_bytes_ += static_cast<std::int64_t>(count * size);
    return;
  }
  if (!to_blocks_ || bytes == 0) {
    put_bytes(name, type, size, nullptr, 0);
    entries_.back().count = count;
    const std::size_t begin = values_.size();
    values_.resize(begin + count * size);
    char* to = values_.data() + begin;
    const auto append = [&](std::span<const std::byte> piece) {
      std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    };
    if (bytes > 0) source.pass(0, bytes, append);
    if (!open.empty()) std::memcpy(values_.data() + begin + bytes, open.data(), open.size());
    return;
  }
  put_bytes(name, type, size, open.data(), open.size() / size);
  Entry& entry = entries_.back();
  std::size_t& all = all_bytes_[lineage.id()];
  entry.lineage = lineage.id();
  entry.first_block_byte = all;
  entry.block_bytes = bytes;
  entry.zero_bytes = zeros * size;
  const auto found = stored_.find(lineage.id());
  const std::size_t stored = found == stored_.end() ? 0 : std::max(found->second, all) - all;
  if (stored < bytes) new_bytes_.push_back({lineage.id(), source.start(stored, bytes - stored)});
  all += bytes;
}

Fingerprint StateWriter::fingerprint() const {
  if (digest_) return digest_->value();
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

/// Where the values of a writer of blocks are; empty for others.
std::string StateWriter::blocks_json(const std::map<std::uint64_t, BlockFile>& files) const {
  if (all_bytes_.empty()) return {};
  auto json = nlohmann::ordered_json::object();
  json["files"] = nlohmann::ordered_json::array();
  std::map<std::uint64_t, std::size_t> number_of;
  for (const auto& [lineage, bytes] : all_bytes_) {
    const BlockFile& file = files.at(lineage);
    assert(file.bytes == bytes);
    number_of[lineage] = json["files"].size();
    json["files"].push_back({{"name", file.name}, {"bytes", bytes}, {"checksum", file.checksum.hex()}});
  }
  json["entries"] = nlohmann::ordered_json::array();
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    const Entry& entry = entries_[place];
    if (entry.lineage == 0) continue;
    json["entries"].push_back({{"place", place},
                               {"file", number_of.at(entry.lineage)},
                               {"first", entry.first_block_byte},
                               {"bytes", entry.block_bytes},
                               {"zeros", entry.zero_bytes}});
  }
  return dump_json(json);
}

ModelMetadata StateWriter::metadata(const std::string& blocks) const {
  if (blocks.empty()) {
    return {{std::string(kVersionKey), std::string(kFormatVersion)},
            {std::string(kChecksumKey), fingerprint().hex()}};
  }
  return {{std::string(kVersionKey), std::string(kBlockVersion)},
          {std::string(kChecksumKey), fingerprint().hex()},
          {std::string(kBlocksKey), blocks},
          {std::string(kBlocksChecksumKey), fingerprint_of(blocks).hex()}};
}

std::string StateWriter::bytes() const {
  assert(!to_blocks_);
  return safetensors_bytes(tensors(), metadata({}));
}

void StateWriter::write(const std::filesystem::path& path,
                        const std::map<std::uint64_t, BlockFile>& files) const {
  write_safetensors(path, tensors(), metadata(blocks_json(files)));
}

bool StateReader::is_state(std::string_view bytes) {
  return bytes.substr(std::min<std::size_t>(bytes.size(), 8))
      .starts_with(R"({"__metadata__":{"olrank_state":)");
}

StateReader::StateReader(std::string bytes, std::string origin, std::string_view restart,
                         const std::filesystem::path& folder)
    : bytes_(std::move(bytes)), origin_(std::move(origin)) {
  const auto refuse_version = [&](std::string_view version) {
    fail(
        fmt::format("This checkpoint has format version {}, but this olrank reads versions {} and {}. To "
                    "continue, use the olrank that wrote it, or {}.",
                    version, kFormatVersion, kBlockVersion, restart));
  };
  if (bytes_.starts_with(kFirstFormat)) refuse_version("1");
  SafetensorsView view;
  try {
    view = view_safetensors(bytes_, origin_);
  } catch (const DataError& error) {
    throw_error<IoError>("{} To continue, {}.", error.what(), restart);
  }
  const std::string version = metadata_text(view.metadata, kVersionKey);
  if (version.empty()) fail(fmt::format("This is not a checkpoint of olrank. To continue, {}.", restart));
  if (version != kFormatVersion && version != kBlockVersion) refuse_version(version);
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
  const std::string blocks = metadata_text(view.metadata, kBlocksKey);
  const bool good = fingerprinter.value().hex() == metadata_text(view.metadata, kChecksumKey) &&
                    (version == kFormatVersion ||
                     fingerprint_of(blocks).hex() == metadata_text(view.metadata, kBlocksChecksumKey));
  if (!good)
    fail(fmt::format("This checkpoint is damaged: its checksum does not match. To continue, {}.", restart));
  if (version == kBlockVersion) read_blocks(blocks, folder, restart);
}

void StateReader::read_blocks(const std::string& text, const std::filesystem::path& folder,
                              std::string_view restart) {
  const auto refuse = [&] {
    fail(fmt::format("This checkpoint does not say where its values are. To continue, {}.", restart));
  };
  const auto json = try_parse_json(text);
  try {
    for (const auto& file : json.at("files")) {
      const auto name = file.at("name").get<std::string>();
      const auto size = file.at("bytes").get<std::size_t>();
      if (std::ranges::count(block_file_names(), name) == 0) refuse();
      const std::filesystem::path path = folder / name;
      auto block = std::make_unique<const std::string>(read_prefix(path, size));
      if (block->size() < size || fingerprint_of(*block).hex() != file.at("checksum").get<std::string>()) {
        throw_error<IoError>(
            "{}: This part of the checkpoint {} is damaged: its checksum does not match. To continue, {}.",
            path.string(), origin_, restart);
      }
      blocks_.push_back(std::move(block));
    }
    for (const auto& one : json.at("entries")) {
      Entry& entry = entries_.at(one.at("place").get<std::size_t>());
      const std::string& block = *blocks_.at(one.at("file").get<std::size_t>());
      const auto first = one.at("first").get<std::size_t>();
      const auto size = one.at("bytes").get<std::size_t>();
      const auto zeros = one.at("zeros").get<std::size_t>();
      const std::size_t item_size = std::strtoul(entry.dtype.c_str() + 1, nullptr, 10) / 8;
      // A row is followed by at most as many zeros as its block of rows has room for.
      if (first > block.size() || size > block.size() - first || size % item_size != 0 ||
          zeros % item_size != 0 || zeros / kMostZerosPerByte > size)
        refuse();
      entry.block = std::string_view(block).substr(first, size);
      entry.count += (size + zeros) / item_size;
      entry.zeros = zeros;
    }
  } catch (const nlohmann::json::exception&) {
    refuse();
  } catch (const std::out_of_range&) {
    refuse();
  }
}

void StateReader::fail(std::string_view sentence) const {
  throw_error<IoError>("{}: {}", origin_, excerpt(sentence, 800, 100));  // it may have texts of the file
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
  auto* to = static_cast<char*>(target);
  if (!entry.block.empty()) std::memcpy(to, entry.block.data(), entry.block.size());
  to += entry.block.size();
  if (entry.size > 0) std::memcpy(to, bytes_.data() + entry.begin, entry.size);
  if (entry.zeros > 0) std::memset(to + entry.size, 0, entry.zeros);
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
  return StateReader(read_file(path), path.string(), restart, path.parent_path());
}

std::optional<std::vector<std::string>> block_files_of(const std::filesystem::path& path) {
  std::vector<std::string> names;
  try {
    constexpr std::size_t kLengthBytes = 8;
    const std::string length = read_prefix(path, kLengthBytes);
    std::uint64_t size = 0;
    for (std::size_t byte = 0; byte < length.size(); ++byte)
      size |= std::uint64_t{static_cast<unsigned char>(length[byte])} << (8 * byte);
    if (length.size() < kLengthBytes || size > kLargestJson) return std::nullopt;
    const std::string file = read_prefix(path, kLengthBytes + static_cast<std::size_t>(size));
    const auto header = try_parse_json(std::string_view(file).substr(kLengthBytes));
    const auto& metadata = header.at("__metadata__");
    if (!metadata.contains(kBlocksKey)) return names;
    const auto blocks = try_parse_json(metadata.at(kBlocksKey).get<std::string>());
    for (const auto& one : blocks.at("files")) names.push_back(one.at("name").get<std::string>());
  } catch (const IoError&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return names;
}

}  // namespace olrank
