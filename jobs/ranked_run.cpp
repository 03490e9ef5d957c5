#include "jobs/ranked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "core/ops/blas.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "core/version.h"
#include "jobs/job_folder.h"
#include "models/gloo_transport.h"
#include "models/libtorch_runtime.h"
#include "sim/trial_identity.h"

namespace olrank {
namespace {

/// Throws before any rank waits for the others.
void check_shareable(const Configuration& configuration, const RankPlace& place) {
  const int ranks = place.ranks;
  const DeviceRequest request = parse_device(configuration.run.device);
  const bool names_several =
      request.every_gpu || request.gpus.size() > 1 ||
      (request.gpus.size() == 1 && request.gpus.front().first != request.gpus.front().last);
  if (names_several) {
    throw InvalidArgument(fmt::format(
        "--device {} names several cards, but each rank uses one: use --device cuda, with which each takes "
        "the card of its LOCAL_RANK.",
        configuration.run.device));
  }
  if (configuration.run.device.starts_with("cuda:") && place.local_ranks > 1) {
    throw InvalidArgument(fmt::format(
        "--device {} gives the {} ranks of this machine the same cards: use --device cuda, with which "
        "each takes the card of its LOCAL_RANK.",
        configuration.run.device, place.local_ranks));
  }
  if (configuration.run.jobs != 1) {
    throw InvalidArgument(fmt::format("{} ranks play one trial at a time, so run.jobs has to be 1, not {}.",
                                      ranks, configuration.run.jobs));
  }
  for (const RankerSettings& ranker : configuration.rankers) {
    if (ranker.kind != RankerKind::kP2NeurRank) {
      throw InvalidArgument(
          fmt::format("Ranker '{}' has no networks to share among {} ranks, as only '{}' has: leave out "
                      "--share-members, so that "
                      "each process plays a shard of the trials.",
                      ranker.name, ranks, row_of(RankerKind::kP2NeurRank).name));
    }
    if (ranker.posterior.members < ranks) {
      throw InvalidArgument(
          fmt::format("{} ranks are more than the {} members of ranker '{}': start at most {}.", ranks,
                      ranker.posterior.members, ranker.name, ranker.posterior.members));
    }
  }
}

std::string build_text() {
  const GpuSurvey gpus = visible_gpus();
  return fmt::format("olrank {} ({}), LibTorch {}, {}, {}", version(), revision(),
                     describe_libtorch().version,
                     gpus.built_with_cuda ? fmt::format("CUDA {}", gpus.runtime_version) : "no CUDA",
                     blas::library_name());
}

/// Without what may differ from rank to rank.
std::string configuration_text(Configuration configuration) {
  configuration.run.threads = 0;
  return print_configuration(configuration);
}

void require_equal(RankGroup& group, const std::string& what, const std::string& mine,
                   const std::string& advice) {
  const std::vector<std::string> all = group.all_gather_text(mine);
  for (int rank = 1; rank < group.ranks(); ++rank) {
    if (all[rank] == all.front()) continue;
    const bool is_short = all.front().size() + all[rank].size() < 200;
    throw InvalidArgument(
        fmt::format("Rank {} has {} than rank 0{}: {}.", rank, what,
                    is_short ? fmt::format(" ('{}', not '{}')", all[rank], all.front()) : "", advice));
  }
}

/// The watch and the thread that exchanges may both notice that a rank is lost: the first one says it.
std::atomic_flag loss_is_said;

/// What becomes of a run that ends because of another rank.
std::string what_is_kept(const std::filesystem::path& out) {
  try {
    for (const TrialIdentity& identity : trials_in(out)) {
      if (has_checkpoint(out / identity.path()))
        return "The last checkpoint is kept, and --resume continues from it.";
    }
  } catch (const std::exception&) {
    return "";  // this rank's machine may not have the folder
  }
  return "There is no checkpoint yet: start all ranks again.";
}

[[noreturn]] void end_process(const std::string& sentence, const std::filesystem::path& out) {
  const int code = static_cast<int>(ExitCode::kFailed);
  if (loss_is_said.test_and_set()) {
    std::this_thread::sleep_for(std::chrono::seconds(3));  // while the other thread says it
  } else {
    log_error(fmt::format("This run ends, as {}. {}", sentence, what_is_kept(out)), code);
  }
  std::_Exit(code);
}

}  // namespace

std::unique_ptr<RankedRun> RankedRun::join(const Configuration& configuration) {
  const auto place = rank_place([](const char* name) { return std::getenv(name); });
  if (!place) return nullptr;
  check_shareable(configuration, *place);
  return std::unique_ptr<RankedRun>(new RankedRun(*place, configuration.run.out));
}

RankedRun::RankedRun(const RankPlace& place, const std::filesystem::path& out)
    : place_(place),
      out_(out),
      group_(std::make_unique<RankGroup>(
          place.rank, place.ranks,
          join_ranks(place, [out](const std::string& sentence) { end_process(sentence, out); }))) {
  if (group_->is_first()) return;
  set_progress_style(ProgressStyle::kSilent);
  muted_.emplace();
}

RankedRun::~RankedRun() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    group_->all_gather_text("");  // the store that the others watch is on the first rank
  } catch (const Error&) {
  }
}

void RankedRun::play(const std::function<void()>& work) {
  try {
    work();
  } catch (const RankLost& lost) {
    if (loss_is_said.test_and_set())
      std::this_thread::sleep_for(std::chrono::seconds(3));  // the watch ends it
    throw RankLost(fmt::format("{} {}", lost.what(), what_is_kept(out_)));
  }
}

Configuration RankedRun::on_this_rank(const Configuration& configuration) const {
  Configuration here = configuration;
  if (here.run.threads == 0) here.run.threads = std::max(1, available_threads() / place_.local_ranks);
  if (here.run.device == "cuda") here.run.device = fmt::format("cuda:{}", place_.local_rank);
  return here;
}

void RankedRun::require_same(const Configuration& configuration, const ExperimentPlan& plan) {
  require_equal(*group_, "another build", build_text(), "start the same program on every rank");
  require_equal(*group_, "another configuration", configuration_text(configuration),
                "start every rank with the same files and flags");
  for (const std::int64_t fold : plan.folds) {
    std::string fingerprint;
    group_->together([&] { fingerprint = plan.data->get(fold)->fingerprint; });
    require_equal(*group_, fmt::format("other data of fold {}", fold), fingerprint,
                  "give every rank the same data");
  }
}

}  // namespace olrank
