#include "core/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace olrank {
namespace {

TEST(ErrorTest, MessagesStartWithPosition) {
  EXPECT_STREQ(DataError("a.txt", 3, 7, "A colon is missing.").what(), "a.txt:3:7: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 3, 0, "A colon is missing.").what(), "a.txt:3: A colon is missing.");
  EXPECT_STREQ(DataError("a.txt", 0, 0, "It is empty.").what(), "a.txt: It is empty.");
}

TEST(ErrorTest, ExitCodesDistinguishUsageErrorsFromFailures) {
  EXPECT_EQ(exit_code_of(InvalidArgument("x")), ExitCode::kWrongUsage);
  EXPECT_EQ(exit_code_of(NotBuiltWithCuda("--device cuda")), ExitCode::kWrongUsage);
  EXPECT_EQ(exit_code_of(DataError("f", 1, 1, "x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(NumericError("x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(CudaError("x")), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(IoError("write", "f", ENOSPC)), ExitCode::kFailed);
  EXPECT_EQ(exit_code_of(std::runtime_error("x")), ExitCode::kFailed);
}

TEST(ErrorTest, IoErrorsSuggestAWayOut) {
  const std::string full = IoError("write", "/x/y", ENOSPC).what();
  EXPECT_EQ(full,
            "Cannot write '/x/y': No space left on device. Free some space or choose another folder.");
  EXPECT_STREQ(
      IoError("read", "/x/y", EACCES).what(),
      "Cannot read '/x/y': Permission denied. Make it readable for you (chmod), or run as its owner.");
  EXPECT_STREQ(
      IoError("write", "/x/y", EACCES).what(),
      "Cannot write '/x/y': Permission denied. Choose a folder with write permission, or change its "
      "permissions.");
}

}  // namespace
}  // namespace olrank
