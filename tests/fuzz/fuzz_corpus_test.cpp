#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/io/atomic_file.h"
#include "tests/fuzz/data_checks.h"
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

using std::literals::operator""sv;
constexpr std::string_view kTelling = "0123456789:.-+eE#\n\r\t q\0\xFF"sv;

template <class Check>
void run(const std::string& name, std::uint32_t mutations, const Check& check) {
  if (!std::filesystem::exists("tests/fuzz/corpus"))
    GTEST_SKIP() << "the corpus lies in the checkout, not here";
  const ExpectedWarnings missing_values;
  const std::vector<std::string> inputs = corpus(name);
  ASSERT_GT(inputs.size(), 5U);
  for (const std::string& input : inputs) check(input);
  for (std::uint32_t number = 0; number < mutations; ++number) {
    RngStream rng(make_key({.seed = 1, .purpose = Purpose::kProbe}), number);
    check(mutated(inputs[rng.index(static_cast<std::uint32_t>(inputs.size()))], inputs, kTelling, rng));
  }
}

TEST(FuzzCorpus, LetorText) {
  run("letor", 20'000, [](const std::string& bytes) { fuzz::check_letor(bytes); });
}

TEST(FuzzCorpus, DatasetFile) {
  run("dataset_file", 20'000, [](const std::string& bytes) { fuzz::check_dataset_file(bytes); });
}

}  // namespace
}  // namespace olrank
