#include "core/io/folder.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs[] = {"curve", "model"};

TEST(FolderTest, KnowsTheNamesThatFoldersOfResultsMayHave) {
  for (const char* name : {"a", "pairrank-2", "lambda=0.1+b", "_x"})
    EXPECT_TRUE(is_folder_name(name)) << name;
  for (const char* name : {"", ".a", "..", "a/b", "a b", "a\n", "ü"})
    EXPECT_FALSE(is_folder_name(name)) << name;
  EXPECT_TRUE(is_folder_name(std::string(100, 'a')));
  EXPECT_FALSE(is_folder_name(std::string(101, 'a')));
}

TEST(FolderTest, RemovesNamedFilesAndEmptyFoldersOnly) {
  const TemporaryFolder root;
  for (const char* folder : {"a/b", "a/c", "d/e"}) make_folder(root / folder);
  for (const char* file : {"a/b/curve", "a/b/.model.tmp-12-0", "a/c/curve", "d/e/curve", "d/e/.curve.tmp-1",
                           "d/e/.thesis.tmp-1-2", "d/e/curves"})
    write_file_atomically(root / file, "text");
  remove_files(root.path(), "a/b", kOurs);
  EXPECT_FALSE(fs::exists(root / "a/b"));
  EXPECT_TRUE(fs::exists(root / "a/c/curve"));
  remove_files(root.path(), "a/c", kOurs);
  EXPECT_FALSE(fs::exists(root / "a"));
  remove_files(root.path(), "d/e", kOurs);
  EXPECT_FALSE(fs::exists(root / "d/e/curve"));
  for (const char* foreign : {"d/e/.curve.tmp-1", "d/e/.thesis.tmp-1-2", "d/e/curves"})
    EXPECT_TRUE(fs::exists(root / foreign)) << foreign;
  remove_files(root.path(), "x/y", kOurs);  // is not there
  EXPECT_TRUE(fs::exists(root.path()));
}

TEST(FolderTest, FollowsNoSymbolicLinkWhenItRemoves) {
  const TemporaryFolder root;
  make_folder(root / "elsewhere/b");
  make_folder(root / "a");
  write_file_atomically(root / "elsewhere/b/curve", "mine");
  fs::create_symlink(root / "elsewhere/b", root / "a/b");
  EXPECT_THROW(remove_files(root.path(), "a/b", kOurs), IoError);
  EXPECT_EQ(symbolic_link_below(root.path(), "a/b/c"), root / "a/b");
  EXPECT_EQ(symbolic_link_below(root.path(), "elsewhere/b"), std::nullopt);
  // A file that is a link goes, what it points to stays.
  fs::create_symlink(root / "elsewhere/b/curve", root / "a/curve");
  remove_files(root.path(), "a", kOurs);
  EXPECT_FALSE(fs::is_symlink(root / "a/curve"));
  EXPECT_EQ(read_file(root / "elsewhere/b/curve"), "mine");
}

}  // namespace
}  // namespace olrank
