#include "core/io/state_archive.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"

namespace olrank {
namespace {

constexpr std::string_view kMagic = "olrankst";
constexpr std::uint32_t kFormatVersion = 1;

/// In front of each entry, followed by name and values without padding.
struct EntryHeader {
  std::uint64_t count = 0;
  std::uint16_t name_size = 0;
  std::uint8_t type = 0;
  std::uint8_t item_size = 0;
  std::uint32_t unused = 0;
};
static_assert(sizeof(EntryHeader) == 16);

/// At the start of a file.
struct FileHeader {
  char magic[8];
  std::uint32_t format_version;
  std::uint32_t unused;
  std::uint64_t size;  // of the entries
  Fingerprint fingerprint;
};
static_assert(sizeof(FileHeader) == 40);

}  // namespace

void StateWriter::put_bytes(std::string_view name, char type, std::size_t size, const void* data,
                            std::size_t count) {
  const EntryHeader header{count, static_cast<std::uint16_t>(name.size()), static_cast<std::uint8_t>(type),
                           static_cast<std::uint8_t>(size), 0};
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
  bytes_.append(name);
  if (count > 0) bytes_.append(static_cast<const char*>(data), count * size);
}

StateReader::StateReader(std::string_view bytes, std::string origin)
    : bytes_(bytes), origin_(std::move(origin)) {}

void StateReader::fail(std::string_view sentence) const {
  throw IoError(fmt::format("{}: {}", origin_, sentence));
}

StateReader::Entry StateReader::entry_here(std::string_view name) const {
  EntryHeader header;
  if (bytes_.size() - position_ < sizeof header) {
    fail(fmt::format("The saved state ends where '{}' should stand.", name));
  }
  std::memcpy(&header, bytes_.data() + position_, sizeof header);
  const std::size_t begin = position_ + sizeof header;
  const std::size_t left = bytes_.size() - begin;
  if (left < header.name_size || header.item_size == 0 ||
      header.count > (left - header.name_size) / header.item_size) {
    fail(fmt::format("The saved state is cut off within '{}'.", name));
  }
  return {bytes_.substr(begin, header.name_size),
          static_cast<char>(header.type),
          header.item_size,
          bytes_.data() + begin + header.name_size,
          header.count,
          header.count * header.item_size};
}

void StateReader::pass(const Entry& entry) {
  position_ = static_cast<std::size_t>(entry.data - bytes_.data()) + entry.bytes;
}

StateReader::Entry StateReader::next(std::string_view name, char type, std::size_t size) {
  const Entry entry = entry_here(name);
  if (entry.name != name || entry.type != type || entry.item_size != size) {
    fail(fmt::format(
        "The saved state has '{}' where '{}' should stand: it belongs to another ranker or version.",
        entry.name, name));
  }
  pass(entry);
  return entry;
}

void StateReader::skip_to(std::string_view name) {
  for (Entry entry = entry_here(name); entry.name != name; entry = entry_here(name)) pass(entry);
}

void StateReader::require_count(std::string_view name, const Entry& entry, std::size_t count) const {
  if (entry.count == count) return;
  fail(fmt::format("The saved state has {} values of '{}' instead of {}: it belongs to another shape.",
                   entry.count, name, count));
}

void StateReader::copy(const Entry& entry, void* target) {
  if (entry.bytes > 0) std::memcpy(target, entry.data, entry.bytes);
}

std::string StateReader::get_text(std::string_view name) {
  const std::vector<char> letters = get<char>(name);
  return {letters.begin(), letters.end()};
}

void StateReader::require_end() const {
  if (position_ == bytes_.size()) return;
  fail("The saved state holds more than this ranker knows: it belongs to another ranker or version.");
}

void write_state_file(const std::filesystem::path& path, const StateWriter& state) {
  FileHeader header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.format_version = kFormatVersion;
  header.size = state.bytes().size();
  header.fingerprint = state.fingerprint();
  AtomicFile file(path);
  file.write({reinterpret_cast<const char*>(&header), sizeof header});
  file.write(state.bytes());
  file.commit();
}

std::string read_state_file(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  FileHeader header{};
  const auto refuse = [&](const std::string& sentence) {
    throw IoError(fmt::format("{}: {}", path.string(), sentence));
  };
  if (bytes.size() < sizeof header || std::string_view(bytes).substr(0, kMagic.size()) != kMagic) {
    refuse("This is no saved state of olrank.");
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.format_version != kFormatVersion) {
    refuse(fmt::format(
        "The saved state has format version {}; this olrank reads version {}. Go on with the olrank that "
        "wrote it, or start anew with --force.",
        header.format_version, kFormatVersion));
  }
  bytes.erase(0, sizeof header);
  if (bytes.size() != header.size || fingerprint_of(bytes) != header.fingerprint) {
    refuse("The saved state is damaged: its checksum does not fit.");
  }
  return bytes;
}

}  // namespace olrank
