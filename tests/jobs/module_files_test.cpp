#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"
#include "tests/models/modules/script_file.h"
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
  EXPECT_NE(first.find("# module " + script.string() + " has the content "), std::string::npos) << first;
  EXPECT_NE(recipe(2), first);
  EXPECT_EQ(recipe(1), first);
}

TEST(ModuleFilesTest, AServiceKeepsItsFile) {
  for (const std::string kind : {"olranknet", "p2neurrank", "pdgd"}) {
    SCOPED_TRACE(kind);
    const TemporaryFolder folder;
    const std::filesystem::path script = folder / "scorer.pt";
    write_script(script, kColumns);
    ServiceRequest request;
    request.names_kind = true;
    request.features = kColumns;
    request.ranker = overrides_of(script, kind);
    ModelTensors first;
    {
      StateFolder state(folder / "state");
      const ResolvedService service = resolve_service(state, request);
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
  ServiceRequest request;
  request.names_kind = true;
  request.features = kColumns + 1;
  request.ranker = overrides_of(script, "olranknet");
  const StateFolder state(folder / "state");
  const std::string sentence = message_of<InvalidArgument>([&] { resolve_service(state, request); });
  EXPECT_NE(sentence.find("fails on 7 documents of 6 features"), std::string::npos) << sentence;
  std::filesystem::remove(script);
  const std::string missing = message_of<InvalidArgument>([&] { resolve_service(state, request); });
  EXPECT_NE(missing.find("there is no file"), std::string::npos) << missing;
}

}  // namespace
}  // namespace olrank
