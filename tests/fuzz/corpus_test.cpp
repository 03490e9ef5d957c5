// The targets of the header OLRANK_CHECKS, over their corpus and over mutations of it.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include OLRANK_CHECKS

#include "tests/support/cases.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/mutated.h"

namespace olrank {
namespace {

/// A line of the file is the name of an input, a space and the input.
std::vector<std::string> corpus(const std::string& name) {
  std::vector<std::string> inputs;
  for (const std::string& line : lines_of("fuzz/corpus/" + name + ".txt"))
    inputs.push_back(unescaped(line.substr(line.find(' ') + 1)));
  return inputs;
}

TEST(OLRANK_SUITE, KeepsThePromises) {
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
