// The targets of the header OLRANK_CHECKS, over their corpus and over mutations of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include OLRANK_CHECKS

#include "core/io/atomic_file.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/mutated.h"

namespace olrank {
namespace {

std::vector<std::string> corpus(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) inputs.push_back(read_file(path));
  return inputs;
}

TEST(FuzzCorpus, KeepsThePromises) {
  if (!std::filesystem::exists("tests/fuzz/corpus"))
    GTEST_SKIP() << "the corpus lies in the checkout, not here";
  const ExpectedWarnings missing_values;
  for (const fuzz::Target& target : fuzz::kTargets) {
    const std::vector<std::string> inputs = corpus(target.name);
    ASSERT_GT(inputs.size(), 5U) << target.name;
    for (const std::string& input : inputs) target.check(input);
    for (std::uint32_t number = 0; number < target.mutations; ++number) {
      RngStream rng(make_key({.seed = 1, .purpose = Purpose::kProbe}), number);
      const std::string& input = inputs[rng.index(static_cast<std::uint32_t>(inputs.size()))];
      target.check(mutated(input, inputs, target.telling, rng));
    }
  }
}

}  // namespace
}  // namespace olrank
