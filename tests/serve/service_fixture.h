#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/io/atomic_file.h"
#include "models/ranker_factory.h"
#include "serve/document_store.h"
#include "serve/learner.h"
#include "serve/open_lists.h"
#include "serve/service.h"
#include "tests/support/temporary_folder.h"

namespace olrank {

constexpr std::int64_t kServedFeatures = 4;

inline std::unique_ptr<OnlineRanker> make_served(RankerKind kind = RankerKind::kOlRankNet) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = "served";
  settings.network.width = 6;
  settings.trainer.steps = 5;
  return make_ranker(settings, kServedFeatures, TrialKeys::of(1, 1, "service"), 5);
}

/// Feedback from a user who prefers a large first feature.
inline FeedbackRecord liked_first_feature(int number, std::size_t docs = 5) {
  FeedbackRecord record;
  record.impression = fmt::format("i-{}", number);
  record.query = fmt::format("q{}", number % 7);
  record.columns = kServedFeatures;
  record.has_unshown = true;  // none
  for (std::size_t doc = 0; doc < docs; ++doc) {
    record.docs.push_back({fmt::format("d{}", doc), false});
    for (std::int64_t k = 0; k < kServedFeatures; ++k) {
      const auto mixed =
          static_cast<unsigned>(number % 7 * 31 + static_cast<int>(doc) * 17 + static_cast<int>(k) * 7);
      record.inputs.push_back(static_cast<float>(mixed * 2654435761U >> 16 & 0xFFU) / 255.0F);
    }
    record.clicks.push_back(record.inputs[doc * kServedFeatures] > 0.5F ? 1 : 0);
  }
  return record;
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The files of a folder and their bytes.
inline std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

inline StoredDocument stored_document(const std::string& id, std::int64_t version,
                                      std::vector<float> columns) {
  StoredDocument one;
  one.id = {id, false};
  one.version = version;
  one.columns = std::move(columns);
  return one;
}

/// `act(thread)` in so many threads at once.
template <class Act>
void in_threads(int count, const Act& act) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread) threads.emplace_back(act, thread);
  for (std::thread& thread : threads) thread.join();
}

/// Waits for what another thread does.
template <class Condition>
void wait_until(const Condition& holds) {
  for (int time = 0; time < 2000 && !holds(); ++time)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(holds());
}

/// Feedback is learned by another thread, some time after it is logged.
inline void wait_for_round(const Learner& learner, std::uint64_t round) {
  wait_until([&] { return learner.latest()->round >= round; });
}

/// The records of a log, in order.
inline std::vector<FeedbackRecord> records_of(const FileLog& log, std::int64_t position = 0) {
  std::vector<FeedbackRecord> records;
  FileLog::Reader reader(log, position);
  for (std::string_view line; reader.next(line);) {
    EXPECT_FALSE(parse_record(line, records.emplace_back()));
  }
  return records;
}

/// Limits this process's file size, which looks like a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

inline Service::Parts small_parts() {
  Service::Parts parts;
  parts.normaliser.kind = Normalisation::kNone;
  parts.normaliser.features = kServedFeatures;
  parts.requests.features = kServedFeatures;
  parts.requests.docs = 50;
  parts.requests.cutoff = 5;
  parts.start = "test";
  return parts;
}

/// A learner and a service with a temporary log.
struct SmallService {
  explicit SmallService(RankerKind kind = RankerKind::kOlRankNet)
      : log(folder / "log", 100),
        learner(make_served(kind), log, {folder / "checkpoint", "identity", 1000}) {
    learner.start();
  }

  TemporaryFolder folder;
  FileLog log;
  Learner learner;
  FirstAnswers lists{{ImpressionLimits{}, small_parts().start}, log};
  Service service{small_parts(), lists, log, learner};
};

}  // namespace olrank
