#include "core/io/containers.h"

#include <zlib.h>

#include <limits>

#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();

void append(std::string& bytes, std::uint64_t number, int size) {
  for (int byte = 0; byte < size; ++byte) bytes += static_cast<char>(number >> (8 * byte) & 0xFFU);
}

std::uint32_t checksum_of(std::string_view content) {
  uLong sum = ::crc32_z(0, nullptr, 0);
  sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(content.data()), content.size());
  return static_cast<std::uint32_t>(sum);
}

/// The fields that an entry's local header and its directory record share. The date is 1 January 1980, the
/// earliest in the format.
void append_description(std::string& bytes, std::uint32_t checksum, std::uint32_t size,
                        std::size_t name_length, std::size_t padding) {
  append(bytes, 20, 2);  // version needed
  append(bytes, 0, 2);   // flags
  append(bytes, 0, 2);   // stored
  append(bytes, 0, 2);   // time
  append(bytes, 0x21, 2);
  append(bytes, checksum, 4);
  append(bytes, size, 4);
  append(bytes, size, 4);
  append(bytes, name_length, 2);
  append(bytes, padding, 2);
}

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kLengthAndBytes = 2;

std::uint64_t tag(int field, std::uint64_t wire_type) {
  return static_cast<std::uint64_t>(field) << 3 | wire_type;
}

}  // namespace

void StoredZip::add(const std::string& name, std::string_view content) {
  constexpr std::size_t kHeader = 30;
  constexpr std::size_t kExtraHeader = 4;
  const std::size_t unpadded = bytes_.size() + kHeader + name.size() + kExtraHeader;
  const std::size_t padding = kExtraHeader + (kAlignment - unpadded % kAlignment) % kAlignment;
  if (std::uint64_t{unpadded} + kAlignment + content.size() > kLargest) {
    throw_error<InvalidArgument>("The model takes more than the {} bytes that a zip archive can hold.",
                                 kLargest);
  }
  const Entry entry{name, checksum_of(content), static_cast<std::uint32_t>(content.size()),
                    static_cast<std::uint32_t>(bytes_.size())};
  bytes_ += "PK\3\4";
  append_description(bytes_, entry.checksum, entry.size, name.size(), padding);
  bytes_ += name;
  bytes_ += "FB";  // an extra field that readers ignore
  append(bytes_, padding - kExtraHeader, 2);
  bytes_.append(padding - kExtraHeader, 'Z');
  bytes_ += content;
  entries_.push_back(entry);
}

std::string StoredZip::finish() {
  const std::size_t directory = bytes_.size();
  for (const Entry& entry : entries_) {
    bytes_ += "PK\1\2";
    append(bytes_, 20, 2);  // version that made it
    append_description(bytes_, entry.checksum, entry.size, entry.name.size(), 0);
    append(bytes_, 0, 2);  // comment
    append(bytes_, 0, 2);  // disk
    append(bytes_, 0, 2);  // internal attributes
    append(bytes_, 0, 4);  // external attributes
    append(bytes_, entry.place, 4);
    bytes_ += entry.name;
  }
  const std::size_t size = bytes_.size() - directory;
  bytes_ += "PK\5\6";
  append(bytes_, 0, 4);  // disks
  append(bytes_, entries_.size(), 2);
  append(bytes_, entries_.size(), 2);
  append(bytes_, size, 4);
  append(bytes_, directory, 4);
  append(bytes_, 0, 2);  // comment
  return std::move(bytes_);
}

void ProtobufMessage::put_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7FU) | 0x80U);
  bytes_ += static_cast<char>(value);
}

void ProtobufMessage::put_number(int field, std::int64_t value) {
  put_varint(tag(field, kVarint));
  put_varint(static_cast<std::uint64_t>(value));
}

void ProtobufMessage::put_text(int field, std::string_view bytes) {
  put_varint(tag(field, kLengthAndBytes));
  put_varint(bytes.size());
  bytes_ += bytes;
}

}  // namespace olrank
