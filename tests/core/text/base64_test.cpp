#include "core/text/base64.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

TEST(Base64, IsThatOfRfc4648) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xfb\xff\xbf", "+/+/"}}) {
    EXPECT_EQ(base64_of(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
}

TEST(Base64, ReadsBackEveryByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(bytes_of_base64(base64_of(bytes.substr(size))), bytes.substr(size));
}

TEST(Base64, RefusesOtherText) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zm9v\n", "Zm9-", "Z===", "====", "Zh==", "Zm9="})
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace olrank
