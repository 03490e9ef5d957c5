#include "core/io/protobuf_message.h"

namespace olrank {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kLengthAndBytes = 2;

std::uint64_t tag(int field, std::uint64_t wire_type) {
  return static_cast<std::uint64_t>(field) << 3 | wire_type;
}

}  // namespace

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
