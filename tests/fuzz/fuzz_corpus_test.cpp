#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/random/rng_stream.h"
#include "tests/fuzz/data_checks.h"
#include "tests/support/expected_warnings.h"

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

/// One to four small damages: bytes changed, dropped, doubled, or a piece of another input put in.
std::string mutated(std::string bytes, const std::vector<std::string>& others, RngStream& rng) {
  static constexpr std::string_view kTelling = "0123456789:.-+eE#\n\r\t q\0\xFF";
  for (std::uint32_t left = 1 + rng.index(4); left > 0; --left) {
    const std::size_t at = rng.index(static_cast<std::uint32_t>(bytes.size()) + 1);
    switch (rng.index(5)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(rng.next_bits());
        break;
      case 1:
        bytes.erase(at, rng.index(8));
        break;
      case 2:
        bytes.insert(at, 1, kTelling[rng.index(static_cast<std::uint32_t>(kTelling.size()))]);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, rng.index(30)));
        break;
      default: {
        const std::string& other = others[rng.index(static_cast<std::uint32_t>(others.size()))];
        const std::size_t from = rng.index(static_cast<std::uint32_t>(other.size()) + 1);
        bytes.insert(at, other.substr(from, rng.index(60)));
      }
    }
  }
  return bytes;
}

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
    check(mutated(inputs[rng.index(static_cast<std::uint32_t>(inputs.size()))], inputs, rng));
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
