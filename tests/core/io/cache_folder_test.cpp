#include "core/io/folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace olrank {
namespace {

/// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheFolderTest, FollowsXdgBaseDirectorySpecification) {
  const Environment home("HOME", "/home/u");
  {
    const Environment cache("XDG_CACHE_HOME", "/c");
    EXPECT_EQ(user_cache_folder(), "/c/olrank");
  }
  {
    const Environment cache("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(user_cache_folder(), "/home/u/.cache/olrank");
  }
  const Environment cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(user_cache_folder(), "/home/u/.cache/olrank");
  const Environment homeless("HOME", nullptr);
  EXPECT_EQ(user_cache_folder(), "");
}

}  // namespace
}  // namespace olrank
