#include "core/io/containers.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

/// The examples of the format's own description.
TEST(ProtobufMessage, WritesDocumentedExamples) {
  ProtobufMessage number;
  number.put_number(1, 150);
  EXPECT_EQ(number.bytes(), std::string("\x08\x96\x01"));
  ProtobufMessage text;
  text.put_text(2, "testing");
  EXPECT_EQ(text.bytes(), std::string("\x12\x07testing"));
  ProtobufMessage nested;
  nested.put_message(3, number);
  EXPECT_EQ(nested.bytes(), std::string("\x1a\x03\x08\x96\x01"));
}

TEST(ProtobufMessage, WritesVarintsOfEveryLength) {
  ProtobufMessage message;
  message.put_number(1, 0);
  message.put_number(16, 127);
  message.put_number(1, -1);
  EXPECT_EQ(message.bytes(),
            std::string("\x08\x00\x80\x01\x7F\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 16));
}

}  // namespace
}  // namespace olrank
