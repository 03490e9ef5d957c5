#include "jobs/saved_trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

TEST(StartModelTest, OnlyAClickModelStartsFromAnAdditiveModel) {
  const TemporaryFolder folder;
  const std::string file = (folder / "model.safetensors").string();
  write_file_atomically(file, model_bytes(additive_tensors(std::vector<float>(8)), {}));
  for (const std::string kind : {"ranknet", "pdgd", "olranknet"}) {
    EXPECT_EQ(
        message_of<InvalidArgument>([&] {
          from_text(fmt::format("[[ranker]]\nkind = \"{}\"\nstart_from = \"{}\"\n", kind, file));
        }),
        file +
            " holds an additive model, from which only clickgp starts: choose kind = \"clickgp\", a linear "
            "model or a network.");
  }
  const Configuration configuration =
      from_text(fmt::format("[[ranker]]\nkind = \"clickgp\"\nstart_from = \"{}\"\n", file));
  ASSERT_EQ(configuration.rankers.size(), 1U);
  EXPECT_EQ(configuration.rankers[0].start_from, file);
}

}  // namespace
}  // namespace olrank
