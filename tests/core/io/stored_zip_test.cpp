#include "core/io/containers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/io/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::string example_zip() {
  StoredZip zip;
  zip.add("a/first", std::string(1000, 'x'));
  zip.add("a/empty", "");
  zip.add("b", "123456789");
  return zip.finish();
}

TEST(StoredZip, EntriesAreAlignedAndUnchanged) {
  const std::string bytes = example_zip();
  EXPECT_EQ(bytes, example_zip());
  const std::size_t content = bytes.find("123456789");
  ASSERT_NE(content, std::string::npos);
  EXPECT_EQ(content % StoredZip::kAlignment, 0U);
  EXPECT_EQ(bytes.find(std::string(1000, 'x')) % StoredZip::kAlignment, 0U);
  // The check value of CRC-32, in front of both sizes, in the entry's header and in the directory.
  const std::string known("\x26\x39\xF4\xCB\x09\0\0\0\x09\0\0\0", 12);
  const std::size_t first = bytes.find(known);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(bytes.find(known, first + 1), std::string::npos);
}

TEST(StoredZip, PythonReadsIt) {
  if (std::system("python3 -c 'import zipfile' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is missing";
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.zip", example_zip());
  std::ofstream(folder / "check.py") << R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    assert archive.namelist() == ["a/first", "a/empty", "b"]
    assert [archive.read(name) for name in archive.namelist()] == [b"x" * 1000, b"", b"123456789"]
)";
  const std::string command =
      "python3 '" + (folder / "check.py").string() + "' '" + (folder / "a.zip").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace olrank
