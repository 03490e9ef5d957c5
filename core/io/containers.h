#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A zip archive of uncompressed entries, each aligned to kAlignment so that a reader can map it.
/// Timestamps are constant, so equal entries give equal bytes.
class StoredZip {
 public:
  static constexpr std::size_t kAlignment = 64;

  void add(const std::string& name, std::string_view content);
  /// Finishes the archive; nothing can be added afterwards.
  std::string finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t checksum = 0;
    std::uint32_t size = 0;
    std::uint32_t place = 0;
  };

  std::string bytes_;
  std::vector<Entry> entries_;
};

/// One message in the wire format of protocol buffers, field by field.
class ProtobufMessage {
 public:
  void put_number(int field, std::int64_t value);
  void put_text(int field, std::string_view bytes);
  void put_message(int field, const ProtobufMessage& message) { put_text(field, message.bytes()); }

  const std::string& bytes() const { return bytes_; }

 private:
  void put_varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace olrank
