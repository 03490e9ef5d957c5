#include "core/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

inline const std::vector<float> kMatrix = {1.0F, -2.5F, 0.1F, -0.0F, 1e-40F, 3e38F};
inline const std::vector<float> kBias = {7.0F};
inline const std::vector<float> kNothing;

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

/// A reader of the format: eight bytes of length, a JSON header, values at the header's offsets.
struct Parsed {
  nlohmann::json header;
  std::string values;
  std::uint64_t header_size = 0;
};

Parsed parse(const std::string& file) {
  Parsed parsed;
  EXPECT_GE(file.size(), 8U);
  for (int byte = 7; byte >= 0; --byte) {
    parsed.header_size = parsed.header_size << 8 | static_cast<unsigned char>(file[byte]);
  }
  EXPECT_LE(8 + parsed.header_size, file.size());
  parsed.header = nlohmann::json::parse(file.substr(8, parsed.header_size));
  parsed.values = file.substr(8 + parsed.header_size);
  return parsed;
}

std::vector<float> values_of(const Parsed& parsed, const std::string& name) {
  const auto& offsets = parsed.header.at(name).at("data_offsets");
  const std::size_t begin = offsets.at(0);
  const std::size_t end = offsets.at(1);
  std::vector<float> values((end - begin) / sizeof(float));
  EXPECT_LE(end, parsed.values.size());
  if (!values.empty()) std::memcpy(values.data(), parsed.values.data() + begin, end - begin);
  return values;
}

std::string example_file() {
  const std::vector<NamedTensor> tensors = {{"linear.weight", {2, 3}, kMatrix},
                                            {"bias", {1}, kBias},
                                            {"none", {0, 3}, kNothing},
                                            {"again", {3, 2, 1}, kMatrix}};
  return safetensors_bytes(tensors, {{"format", "pt"}, {"architecture", "linear"}, {"text", "\"α\"\n{}"}});
}

TEST(SafetensorsReaderTest, RefusesInvalidFilesWithFileName) {
  const auto refusal = [](const std::string& bytes) {
    return message_of<DataError>([&] { parse_safetensors(bytes, "some.safetensors"); });
  };
  expect_cases("core/io/safetensors_test.txt", "files", refusal);
  // Texts that nest.
  const std::string deep(100'000, '[');
  for (const std::string& header :
       {R"({"w":)" + deep,
        R"({"w":{"dtype":)" + deep + std::string(100'000, ']') + R"(,"shape":[1],"data_offsets":[0,4]}})"})
    EXPECT_TRUE(contains(refusal(file_of(header)), "not a JSON object"));
}

TEST(SafetensorsReaderTest, RefusesFilesThatAreCutOrLonger) {
  const std::string whole = example_file();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse_safetensors(whole.substr(0, length), "x"), DataError) << length;
  EXPECT_THROW(parse_safetensors(whole + "x", "x"), DataError);
}

TEST(SafetensorsTest, RoundTripsHeaderAndValues) {
  const Parsed parsed = parse(example_file());
  EXPECT_EQ((8 + parsed.header_size) % 8, 0U);
  ASSERT_EQ(parsed.header.size(), 5U);
  const nlohmann::json metadata = {{"format", "pt"}, {"architecture", "linear"}, {"text", "\"α\"\n{}"}};
  EXPECT_EQ(parsed.header.at("__metadata__"), metadata);
  const SafetensorsContents read = parse_safetensors(example_file(), "x");
  EXPECT_EQ(nlohmann::json(std::map(read.metadata.begin(), read.metadata.end())), metadata);
  ASSERT_EQ(read.tensors.size(), 4U);
  // Offsets leave no gap and no overlap, and the last one is the end: what the format demands.
  std::size_t begin = 0;
  for (const auto& tensor : read.tensors) {
    const auto& header = parsed.header.at(tensor.name);
    EXPECT_EQ(header.at("dtype"), "F32");
    EXPECT_EQ(header.at("shape"), nlohmann::json(tensor.shape));
    EXPECT_EQ(header.at("data_offsets").at(0), begin) << tensor.name;
    begin += sizeof(float) * tensor.values.size();
    EXPECT_EQ(header.at("data_offsets").at(1), begin) << tensor.name;
    const std::vector<float>& expected = tensor.name == "bias"   ? kBias
                                         : tensor.name == "none" ? kNothing
                                                                 : kMatrix;
    for (const std::vector<float>& values : {tensor.values, values_of(parsed, tensor.name)}) {
      ASSERT_EQ(values.size(), expected.size());
      EXPECT_TRUE(values.empty() ||
                  std::memcmp(values.data(), expected.data(), sizeof(float) * expected.size()) == 0);
    }
  }
  EXPECT_EQ(begin, parsed.values.size());
  EXPECT_EQ(read.tensors[3].shape, (std::vector<std::int64_t>{3, 2, 1}));
  // Other orders and blanks are the format's as well.
  const auto scalar = parse_safetensors(file_of(tensor_of("[ ]", "[0, 4]") + "   ", 4), "x");
  EXPECT_EQ(scalar.tensors.at(0).values, std::vector<float>{0.0F});
}

TEST(SafetensorsTest, ValuesAreAlignedForAnyHeaderLength) {
  for (std::size_t letters = 0; letters < 17; ++letters) {
    const std::vector<NamedTensor> tensors = {{"w" + std::string(letters, 'x'), {1}, kBias}};
    const Parsed parsed = parse(safetensors_bytes(tensors, {}));
    EXPECT_EQ(parsed.header_size % 8, 0U);
    EXPECT_FALSE(parsed.header.contains("__metadata__"));
    EXPECT_EQ(values_of(parsed, tensors[0].name), kBias);
  }
}

TEST(SafetensorsTest, HeaderIsAnObjectWithoutTensors) {
  const Parsed parsed = parse(safetensors_bytes({}, {}));
  EXPECT_EQ(parsed.header, nlohmann::json::object());
  EXPECT_TRUE(parsed.values.empty());
  EXPECT_TRUE(parse_safetensors(file_of("{}"), "x").tensors.empty());
}

// As docs/MODELS.md describes it.
TEST(SafetensorsTest, ChecksumCoversMetadataAndTensorsByName) {
  const std::vector<NamedTensor> tensors = {{"b", {2, 3}, kMatrix}, {"a", {1}, kBias}};
  const ModelMetadata metadata = {{"text", "\"α\"\n{}"}, {"architecture", "linear"}};
  const std::string file = checked_safetensors_bytes(tensors, metadata);
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  };
  using std::literals::operator""s;
  const std::string said = "architecture\0linear\0text\0\"α\"\n{}\0"s + "a\0F32\0[1]\0"s + bytes(kBias) +
                           "b\0F32\0[2, 3]\0"s + bytes(kMatrix);
  EXPECT_EQ(parse(file).header.at("__metadata__").at("olrank_checksum"), fingerprint_of(said).hex());

  EXPECT_EQ(parse_safetensors(file, "x").metadata, metadata);
  // Other programs write the model in another order, or without a checksum.
  const std::vector<NamedTensor> turned = {tensors[1], tensors[0]};
  const ModelMetadata turned_metadata = {
      {"olrank_checksum", fingerprint_of(said).hex()}, metadata[1], metadata[0]};
  EXPECT_EQ(parse_safetensors(safetensors_bytes(turned, turned_metadata), "x").tensors.size(), 2U);
  EXPECT_EQ(parse_safetensors(safetensors_bytes(tensors, metadata), "x").tensors.size(), 2U);
  const std::string other = safetensors_bytes(tensors, {{"olrank_checksum", std::string(32, '0')}});
  EXPECT_EQ(
      message_of<DataError>([&] { parse_safetensors(other, "some.safetensors"); }),
      "some.safetensors: This model file is damaged: its checksum does not match. Restore it, or make it "
      "again; a program that has changed it has to remove 'olrank_checksum' from its metadata.");
  // A model is the same to a service whether its file has a checksum or not.
  EXPECT_EQ(model_fingerprint(file), fingerprint_of(safetensors_bytes(tensors, metadata)));
  EXPECT_EQ(checked_safetensors_bytes(tensors, {metadata[0], {"olrank_checksum", "old"}, metadata[1]}),
            file);
  for (std::size_t length = 0; length < file.size(); ++length) model_fingerprint(file.substr(0, length));
}

}  // namespace
}  // namespace olrank
