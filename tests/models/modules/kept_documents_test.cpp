#include "models/modules/module_instance.h"

#include <gtest/gtest.h>

#include <vector>

#include "models/modules/module_model.h"
#include "tests/models/modules/module_fixture.h"

namespace olrank {
namespace {

std::vector<float> numbers_of(const torch::Tensor& tensor) {
  const torch::Tensor values = tensor.contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

TEST(KeptDocumentsTest, FindsPartsOfWhatIsKept) {
  const std::vector<float> features = module_docs(10, 3, 1);
  const std::vector<float> others = module_docs(10, 3, 2);
  const FeatureMatrix docs = matrix_of(features, 3);
  const ModuleDevice device(std::nullopt);
  KeptDocuments documents(device);
  EXPECT_FALSE(documents.find(docs));
  {
    const auto kept = documents.keep(docs);
    EXPECT_EQ(documents.keep(docs), kept) << "twice the same";
    const auto more = documents.keep(matrix_of(others, 3));
    EXPECT_EQ(numbers_of(documents.find(docs).value()), features);
    const FeatureMatrix part = docs.part(4, 9);
    EXPECT_EQ(numbers_of(documents.find(part).value()),
              std::vector<float>(features.begin() + 12, features.begin() + 27));
    EXPECT_EQ(numbers_of(documents.find(matrix_of(others, 3)).value()), others);
    EXPECT_FALSE(documents.find({features.data(), 5, 6})) << "of another width";
    EXPECT_FALSE(documents.find({features.data() + 1, 4, 3})) << "in the middle of a document";
    const std::vector<float> equal = features;
    EXPECT_FALSE(documents.find(matrix_of(equal, 3))) << "elsewhere in memory";
  }
  EXPECT_FALSE(documents.find(docs)) << "after its end";
}

TEST(KeptDocumentsTest, ModulesGiveTheSameBitsForThem) {
  const ModuleModel model({.module = "layernorm", .features = 9, .width = 6, .depth = 3});
  const std::vector<float> features = module_docs(300, 9, 3);
  const FeatureMatrix docs = matrix_of(features, 9);
  const std::vector<float> theta = model.first_parameters(test_key(4));
  const std::vector<double> weights = random_doubles(300, 5);
  ExecutionContext context;
  const auto computed = [&] {
    std::vector<float> scores(300);
    std::vector<double> sum(theta.size());
    model.score(context, theta, docs, scores);
    model.add_gradient(context, theta, docs, weights, sum);
    return std::pair(scores, sum);
  };
  const auto expected = computed();
  const auto kept = model.keep_docs(docs);
  EXPECT_EQ(computed(), expected);
}

TEST(ModuleDeviceTest, RefusesAGpuThatLibTorchCannotUse) {
  if (at::Context::hasCUDA()) GTEST_SKIP() << "LibTorch has a GPU here";
  EXPECT_THROW(ModuleModel({.module = "relu", .features = 3, .width = 4}, 0), NotBuiltWithCuda);
  EXPECT_TRUE(ModuleDevice(std::nullopt).is_cpu());
}

}  // namespace
}  // namespace olrank
