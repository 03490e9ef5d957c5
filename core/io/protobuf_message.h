#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace olrank {

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
