#include "core/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/random/rng_stream.h"
#include "tests/core/io/small_tensors.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::string example() {
  const std::vector<NamedTensor> tensors = {
      {"linear.weight", {2, 3}, kMatrix}, {"bias", {1}, kBias}, {"none", {0, 3}, kNothing}};
  return safetensors_bytes(tensors, {{"format", "pt"}, {"text", "\"α\"\n{}"}});
}

/// A file of any header and that many bytes of values.
std::string file_of(const std::string& header, std::size_t values = 0) {
  std::string file;
  for (int byte = 0; byte < 8; ++byte)
    file += static_cast<char>(std::uint64_t{header.size()} >> (8 * byte) & 0xFFU);
  return file + header + std::string(values, '\0');
}

std::string tensor_of(const std::string& shape, const std::string& offsets,
                      const std::string& type = "\"F32\"") {
  return R"({"w":{"dtype":)" + type + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(SafetensorsReaderTest, ReadsWrittenFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "model.safetensors", example());
  const SafetensorsContents contents =
      parse_safetensors(read_file(folder / "model.safetensors"), "model.safetensors");
  EXPECT_EQ(contents.metadata, (ModelMetadata{{"format", "pt"}, {"text", "\"α\"\n{}"}}));
  ASSERT_EQ(contents.tensors.size(), 3U);
  EXPECT_EQ(contents.tensors[0].name, "linear.weight");
  EXPECT_EQ(contents.tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  ASSERT_EQ(contents.tensors[0].values.size(), 6U);
  EXPECT_EQ(std::memcmp(contents.tensors[0].values.data(), kMatrix.data(), 24), 0);
  EXPECT_EQ(contents.tensors[1].values, kBias);
  EXPECT_EQ(contents.tensors[2].shape, (std::vector<std::int64_t>{0, 3}));
  EXPECT_TRUE(parse_safetensors(file_of("{}"), "x").tensors.empty());
  // Other orders and blanks are the format's as well.
  const auto scalar = parse_safetensors(file_of(tensor_of("[ ]", "[0, 4]") + "   ", 4), "x");
  EXPECT_EQ(scalar.tensors.at(0).values, std::vector<float>{0.0F});
}

TEST(SafetensorsReaderTest, RefusesInvalidFilesWithFileName) {
  const std::string two = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":)";
  std::string nested = R"({"w":)";
  for (int depth = 0; depth < 100'000; ++depth) nested += "[";
  const std::string deep_dtype = R"({"w":{"dtype":)" + std::string(100'000, '[') +
                                 std::string(100'000, ']') + R"(,"shape":[1],"data_offsets":[0,4]}})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {file_of(deep_dtype), "not a JSON object"},
      {"", "0 bytes"},
      {"1234567", "7 bytes"},
      {std::string(8, '\xff'), "header should have"},
      {file_of("{}").substr(0, 9), "header should have"},
      {file_of(""), "does not begin"},
      {file_of(" {}"), "does not begin"},
      {file_of("[]"), "does not begin"},
      {file_of("{"), "not a JSON object"},
      {file_of("{}{}"), "not a JSON object"},
      {file_of("{\"\xff\":1}"), "not a JSON object"},
      {file_of(nested), "not a JSON object"},
      {file_of(R"({"w":1})"), "tensor 'w' must have dtype, shape and data_offsets"},
      {file_of(R"({"__metadata__":{"a":1}})"), "not a string"},
      {file_of(R"({"__metadata__":[]})"), "metadata is not a JSON object"},
      {file_of(R"({"__metadata__":{"a":"1","a":"2"}})"), "'a' twice"},
      {file_of(two + "[4,8]},\"a\":1}", 8), "'a' twice"},
      {file_of(tensor_of("[1]", "[0,4]", "\"I32\""), 4), "only F32"},
      {file_of(tensor_of("[1]", "[0,4]", "\"F16\""), 4), "does not fit"},
      {file_of(tensor_of("[1]", "[0,4]", "\"F31\""), 4), "unknown dtype \"F31\""},
      {file_of(std::string("{}\0", 3)), "NUL"},
      {file_of(tensor_of("[1]", "[0,4]", "32"), 4), "dtype 32"},
      {file_of(tensor_of("1", "[0,4]"), 4), "not an array"},
      {file_of(tensor_of("[-1]", "[0,4]"), 4), "must be non-negative integers"},
      {file_of(tensor_of("[1.0]", "[0,4]"), 4), "must be non-negative integers"},
      {file_of(tensor_of("[18446744073709551616]", "[0,4]"), 4), "must be non-negative integers"},
      {file_of(tensor_of("[18446744073709551615]", "[0,4]"), 4), "extent"},
      {file_of(tensor_of("[4294967296,4294967296,4294967297]", "[0,4]"), 4), "does not fit"},
      {file_of(tensor_of("[0,4294967296,4294967296,4294967297]", "[0,4]"), 4), "does not fit"},
      {file_of(tensor_of("[2]", "[0,4]"), 4), "does not fit the 4 bytes"},
      {file_of(tensor_of("[1]", "[0,5]"), 5), "does not fit the 5 bytes"},
      {file_of(tensor_of("[1]", "[0,4,8]"), 8), "needs two"},
      {file_of(tensor_of("[1]", "[4,0]"), 8), "from byte 4 to 0"},
      {file_of(tensor_of("[1]", "[0,4]"), 3), "there are 3 bytes"},
      {file_of(tensor_of("[1]", "[18446744073709551612,18446744073709551616]"), 4),
       "must be non-negative integers"},
      {file_of(tensor_of("[1]", "[4,8]"), 8), "begins at byte 4"},
      {file_of(tensor_of("[1]", "[0,4]"), 8), "end at byte 4"},
      {file_of(two + "[0,4]}}", 4), "begins at byte 0"},
      {file_of(two + "[8,12]}}", 12), "begins at byte 8"},
  };
  for (const auto& [bytes, part] : cases) {
    try {
      parse_safetensors(bytes, "some.safetensors");
      ADD_FAILURE() << "accepted what should say: " << part;
    } catch (const DataError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("some.safetensors"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find(part), std::string::npos) << sentence << "\n  without: " << part;
    }
  }
}

TEST(SafetensorsReaderTest, SurvivesRandomDamage) {
  const std::string whole = example();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse_safetensors(whole.substr(0, length), "x"), DataError) << length;
  EXPECT_THROW(parse_safetensors(whole + "x", "x"), DataError);
  RngStream draws(make_key({.purpose = Purpose::kProbe}), 1);
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string damaged = whole;
    const std::uint32_t bytes = 1 + draws.index(3);
    for (std::uint32_t byte = 0; byte < bytes; ++byte)
      damaged[draws.index(static_cast<std::uint32_t>(whole.size()))] = static_cast<char>(draws.index(256));
    try {
      parse_safetensors(damaged, "x");  // a changed value or name is no fault
    } catch (const DataError&) {
    }
  }
}

}  // namespace
}  // namespace olrank
