#include "serve/access_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

class TokenFile : public testing::Test {
 protected:
  std::string token_in(const std::string& bytes) {
    std::ofstream(folder_ / "token", std::ios::binary) << bytes;
    return read_token(folder_ / "token");
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(TokenFile, HoldsOneLine) {
  for (const char* bytes : {"s3cret token", "s3cret token\n", "s3cret token\r\n", "s3cret token  \n"})
    EXPECT_EQ(token_in(bytes), "s3cret token");
  EXPECT_EQ(token_in(std::string(4096, 'x') + "\n").size(), 4096U);
}

TEST_F(TokenFile, RefusesMoreThanOneLineAndControlCharacters) {
  for (const std::string& bytes :
       {std::string("one\ntwo"), std::string("one\ntwo\n"), std::string("one\n\n"), std::string("\none"),
        std::string("o\tne"), std::string("o\rne"), std::string("one\0", 4), std::string("\x1b[0mone"),
        std::string("one\x7F"), std::string("one\r\r\n"), std::string(), std::string("\n"),
        std::string("  \n"), std::string(5000, 'x')}) {
    EXPECT_THROW(token_in(bytes), InvalidArgument) << testing::PrintToString(bytes);
  }
}

TEST_F(TokenFile, RefusesWhatIsNoFile) {
  const std::string missing = message_of<IoError>([] { read_token("/nonexistent/token"); });
  EXPECT_NE(missing.find("No such file or directory"), std::string::npos) << missing;
  const std::string folder = message_of<IoError>([] { read_token("/"); });
  EXPECT_NE(folder.find("Is a directory"), std::string::npos) << folder;
  EXPECT_THROW(read_token("/dev/zero"), InvalidArgument);
}

}  // namespace
}  // namespace olrank
