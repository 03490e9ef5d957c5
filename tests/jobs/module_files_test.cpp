#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"
#include "core/runtime/execution_context.h"
#include "jobs/experiment_run.h"
#include "jobs/settings/configuration.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"
#include "tests/models/modules/module_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

// Trials and services whose network is a TorchScript file.
namespace olrank {
namespace {

constexpr std::int64_t kColumns = 5;

std::vector<SettingOverride> overrides_of(const std::filesystem::path& script, const std::string& kind) {
  return {{"ranker", "", "kind", kind, "a test"},
          {"ranker", "", "network", "module", "a test"},
          {"ranker", "", "module", script.string(), "a test"}};
}

/// A service whose features a program sends.
ServiceRequest request_for(const std::filesystem::path& script, const std::string& kind,
                           std::int64_t features) {
  ServiceRequest request;
  request.names_kind = true;
  request.features = features;
  request.ranker = overrides_of(script, kind);
  return request;
}

TEST(ModuleFilesTest, TheContentOfAFileIsPartOfTheRecipe) {
  const TemporaryFolder folder;
  const std::filesystem::path script = folder / "scorer.pt";
  const auto recipe = [&](std::uint64_t seed) {
    write_script(script, kColumns, kTanhScript, seed);
    auto overrides = overrides_of(script, "olranknet");
    overrides.push_back({"data", "", "source", "synth:mslr-like?queries=5", "a test"});
    const Configuration configuration = resolve_configuration(std::nullopt, overrides);
    return make_plan(configuration, {}).rankers.front().settings;
  };
  const std::string first = recipe(1);
  EXPECT_TRUE(contains(first, "# module " + script.string() + " has the content "));
  EXPECT_NE(recipe(2), first);
  EXPECT_EQ(recipe(1), first);
}

TEST(ModelFilesTest, AServiceStartsFromTheWholeFunctionOfAFile) {
  const TemporaryFolder folder;
  const std::vector<float> hidden = {1, 2, 3, 4};
  const std::vector<float> output = {0.5F, -2};
  const std::vector<float> biases = {0.25F, 1};
  const std::vector<float> bias = {8};
  const std::vector<NamedTensor> tensors = {{"layers.0.weight", {2, 2}, hidden},
                                            {"layers.0.bias", {2}, biases},
                                            {"layers.1.weight", {1, 2}, output},
                                            {"layers.1.bias", {1}, bias}};
  const ModelMetadata about = {{"architecture", "relu"},
                               {"width", "2"},
                               {"depth", "2"},
                               {"parameterisation", "standard"},
                               {"output_scale", "3"}};
  ServiceRequest request;
  request.model = (folder / "model.safetensors").string();
  request.names_kind = true;
  request.ranker = {{"ranker", "", "kind", "olranknet", "a test"}};
  std::string identity;
  for (const std::string& file :
       {safetensors_bytes(tensors, about), checked_safetensors_bytes(tensors, about)}) {
    write_file_atomically(request.model, file);
    const ResolvedService service = resolve_service(StateFolder(folder / "state"), request);
    const ModelTensors started = make_service_ranker(service, available_memory())->model();
    ASSERT_EQ(started.tensors.size(), 4U);
    EXPECT_EQ(started.tensors[0].values, hidden);
    EXPECT_EQ(started.tensors[1].values, biases);
    EXPECT_EQ(started.tensors[2].values, (std::vector<float>{1.5F, -6}));
    EXPECT_EQ(started.tensors[3].values, (std::vector<float>{24}));
    // The service is the same one whether an earlier version wrote the file or this one.
    if (identity.empty()) identity = service.identity.model;
    EXPECT_EQ(service.identity.model, identity);
  }
}

TEST(ModuleFilesTest, AServiceKeepsItsFile) {
  for (const std::string kind : {"olranknet", "p2neurrank", "pdgd"}) {
    SCOPED_TRACE(kind);
    const TemporaryFolder folder;
    const std::filesystem::path script = folder / "scorer.pt";
    write_script(script, kColumns);
    ModelTensors first;
    {
      StateFolder state(folder / "state");
      const ResolvedService service = resolve_service(state, request_for(script, kind, kColumns));
      first = make_service_ranker(service, available_memory())->model();
      state.begin(service.identity, service.model);
      state.accept();
    }
    // Another file of that name changes nothing, and neither does none.
    write_script(script, kColumns, kTanhScript, 7);
    for (const bool there : {true, false}) {
      if (!there) std::filesystem::remove(script);
      const StateFolder state(folder / "state");
      const ResolvedService service = resolve_service(state, {});
      const ModelTensors again = make_service_ranker(service, available_memory())->model();
      EXPECT_EQ(again.architecture, first.architecture);
      ASSERT_EQ(again.tensors.size(), first.tensors.size());
      for (std::size_t k = 0; k < first.tensors.size(); ++k)
        EXPECT_EQ(again.tensors[k].values, first.tensors[k].values);
    }
  }
}

TEST(ModuleFilesTest, AFileForOtherFeaturesIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path script = folder / "scorer.pt";
  write_script(script, kColumns);
  const StateFolder state(folder / "state");
  const auto refusal = [&] {
    return message_of<InvalidArgument>(
        [&] { resolve_service(state, request_for(script, "olranknet", kColumns + 1)); });
  };
  EXPECT_TRUE(contains(refusal(), "fails on 7 documents of 6 features"));
  std::filesystem::remove(script);
  EXPECT_TRUE(contains(refusal(), "there is no file"));
}

}  // namespace
}  // namespace olrank
