#include "serve/model_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/feedback/feedback_record.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "serve/open_lists.h"

namespace olrank {
namespace {

constexpr std::chrono::milliseconds kPollInterval{100};
constexpr std::chrono::seconds kQuietAfterNews{30};

constexpr std::int64_t kRecordsAtOnce = 500;
constexpr std::chrono::milliseconds kReadWait{100};
constexpr std::int64_t kTellMs = 1000;
constexpr std::chrono::milliseconds kFollowerPublishInterval{100};
/// Models are made and sent in at most a tenth of the time.
constexpr int kRestPerPublish = 9;

FeedbackRecord parsed(std::string_view line, std::uint64_t round, const std::string& place) {
  FeedbackRecord record;
  while (line.ends_with('\n')) line.remove_suffix(1);
  if (const auto failure = parse_record(line, record))
    throw DataError(place, static_cast<std::int64_t>(round), failure->column, failure->message);
  return record;
}

}  // namespace

void FollowingLog::tell(const std::string& problem, Time now) {
  if (problem == said_ || (said_at_ && now - *said_at_ < kQuietAfterNews)) return;
  said_ = problem;
  said_at_ = now;
  log_warning("{}",
              problem.empty() ? "The latest model is read again." : "The last model stays: " + problem);
}

ModelFollower::ModelFollower(SnapshotReader reader, Fetch fetch, std::string origin)
    : reader_(std::move(reader)),
      fetch_(std::move(fetch)),
      origin_(std::move(origin)),
      learns_from_unshown_(reader_.learns_from_unshown()) {}

ModelFollower::~ModelFollower() {
  stop();
}

void ModelFollower::start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stopping_ && !failure_) {
      lock.unlock();
      follow();
      lock.lock();
      wake_.wait_for(lock, kPollInterval, [this] { return stopping_; });
    }
  });
}

void ModelFollower::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ModelFollower::require_running() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void ModelFollower::follow() {
  std::string problem;
  try {
    std::optional<std::string> bytes = fetch_();
    if (!bytes && refused_) return;
    std::shared_ptr<const PublishedRanker> next;
    refused_ = bytes.has_value();
    if (bytes) next = reader_.read(*bytes, origin_);
    refused_ = false;
    const std::lock_guard lock(mutex_);
    confirmed_ = std::chrono::steady_clock::now();
    problem_.clear();
    log_.tell(problem_, confirmed_);
    if (!next) return;
    bytes_ = std::move(*bytes);
    latest_.swap(next);
    return;
  } catch (const SettingsReplaced&) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    return;
  } catch (const RedisAway& error) {  // the client has said so
    problem = error.what();
  } catch (const std::exception& error) {
    problem = error.what();
    log_.tell(problem, std::chrono::steady_clock::now());
  }
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

std::shared_ptr<const PublishedRanker> ModelFollower::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::optional<std::string> ModelFollower::failure() const {
  const std::lock_guard lock(mutex_);
  if (latest_->ranker) return std::nullopt;
  return "This replica has no model yet: " +
         (problem_.empty() ? "the learner has published none." : problem_);
}

RankerSource::State ModelFollower::state() {
  const std::lock_guard lock(mutex_);
  return {latest_->round, latest_->pairs, latest_->skipped, {}};
}

RankerSource::Snapshot ModelFollower::snapshot() {
  const std::lock_guard lock(mutex_);
  if (!latest_->ranker) throw Error("This replica has no model yet.");
  return {latest_->round, bytes_};
}

std::optional<double> ModelFollower::model_age() const {
  const std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - confirmed_).count();
}

ModelFollower::Fetch models_of(RedisLog& log) {
  return [&log, known = std::int64_t{-1}]() mutable -> std::optional<std::string> {
    log.client().probe();
    log.poll();
    const std::int64_t round = log.model_round();
    if (round <= known) return std::nullopt;
    std::optional<std::string> model = log.model();
    if (model) known = round;
    return model;
  };
}

StreamArchive::StreamArchive(RedisLog& stream, FileLog& log, Learner& learner, Settings settings,
                             DocumentStore* documents)
    : stream_(stream), log_(log), learner_(learner), settings_(std::move(settings)), documents_(documents) {
  log_.say_of_disk({"The shared log keeps what is not archived; learning waits for the disk.",
                    "The shared log is archived again."});
  while (!mend(true)) {
  }
  // Refuses a stream that was trimmed too far.
  stream_.read(log_.rounds(), 1, std::chrono::milliseconds(1));
  // Tells other learners what this one still needs.
  trim(log_.rounds());
  stream_.set_archived(log_.rounds(), false);
}

void StreamArchive::trim(std::uint64_t records) const {
  const std::uint64_t documents = documents_ != nullptr ? documents_->lines() : 0;
  stream_.trim(settings_.name, {records, documents}, settings_.keep, stream_.server_milliseconds());
}

StreamArchive::~StreamArchive() {
  stop();
}

void StreamArchive::start() {
  archiving_ = std::thread([this] { run([this] { archive(); }); });
  publishing_ = std::thread([this] { run([this] { publish(); }); });
}

void StreamArchive::stop() {
  stopping_ = true;
  if (archiving_.joinable()) archiving_.join();
  if (publishing_.joinable()) publishing_.join();
}

void StreamArchive::require_running() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw StateLost(failure_);
}

void StreamArchive::pause(int milliseconds) const {
  for (int passed = 0; passed < milliseconds && !stopping_; passed += 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// Repeats a step. What a full disk or a server that is away hold up goes on once they are back.
void StreamArchive::run(const std::function<void()>& step) {
  std::string refusal;
  while (!stopping_) {
    try {
      step();
      if (!std::exchange(refusal, {}).empty())
        log_warning("The server of the shared log takes all of it again.");
    } catch (const RedisAway&) {
      pause(100);
    } catch (const RedisError& error) {  // no memory left, say
      if (std::exchange(refusal, error.what()).empty()) log_warning("{} It is tried again.", error.what());
      pause(1000);
    } catch (const LogFull&) {
      pause(1000);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
      return;
    }
  }
}

struct StreamArchive::Common {
  std::uint64_t rounds = 0;   // of the stream
  std::uint64_t records = 0;  // that both have, from the first one on
  bool proven = false;        // records that both still have say so
  FileLog::Reader rest;       // of the archive, if the stream has no other records
  RecordChain chain{};        // of the stream
};

void StreamArchive::restore_counter() {
  if (stream_.mend_counter()) return;
  const std::uint64_t mine = log_.rounds();
  stream_.begin_after(RecordChain::of(log_, 0, mine - std::min(mine, settings_.keep)));
  if (mine == 0) return;
  log_info("{}: The stream begins after the {} of this log.", stream_.client().address().text(),
           counted(mine, "record"));
}

bool StreamArchive::agrees(const StreamState& state) {
  const std::uint64_t mine = log_.rounds();
  if (state.rounds.value_or(0) < mine) return false;
  if (!state.chain || state.chain->begin > mine) return true;
  if (!chain_ || chain_->begin != state.chain->begin)
    chain_ = RecordChain::of(log_, state.chain->begin, mine);
  return state.chain->round != mine || state.chain->hash == chain_->hash;
}

StreamArchive::Common StreamArchive::compare() {
  const StreamState state = stream_.poll();
  Common both{state.rounds.value_or(0), 0, false, FileLog::Reader(log_, 0)};
  const bool chained = state.chain && state.chain->round == both.rounds;
  const std::uint64_t begin = state.chain ? state.chain->begin : both.rounds;
  const std::uint64_t end = std::min(both.rounds, log_.rounds());
  both.chain = {begin, begin, {}};
  const auto contradicts = [&both](const StreamRecord& there) {
    return both.chain.round + 1 == there.round && there.before && *there.before != both.chain.hash;
  };
  const auto differs_earlier = [&both] {
    both.records = 0;
    both.proven = false;
    return both;
  };
  std::vector<StreamRecord> records = stream_.records(0, end, kRecordsAtOnce);
  std::size_t next = 0;
  for (std::string_view line; both.records < end && both.rest.next(line);) {
    const std::string_view body = body_of(line);
    if (next < records.size() && records[next].round == both.records + 1) {
      if (contradicts(records[next])) return differs_earlier();
      both.proven = both.proven || (both.chain.round + 1 == records[next].round &&
                                    !records[next].before.value_or("").empty());
      if (records[next].body != body) return both;
      both.proven = true;
      if (++next == records.size()) {
        records = stream_.records(both.records + 2, end, kRecordsAtOnce);
        next = 0;
      }
    }
    if (++both.records > begin) both.chain.add(body);
  }
  if (both.records == both.rounds && chained && both.records > begin) {
    if (both.chain.hash != state.chain->hash) return differs_earlier();
    both.proven = true;
  } else if (both.records == both.rounds) {
    both.chain = {both.rounds, both.rounds, {}};
  } else if (const auto later = stream_.records(end + 1, end + 1, 1);
             !later.empty() && contradicts(later[0])) {
    return differs_earlier();
  }
  return both;
}

/// Whether the stream continues the archive; if not, does what is possible.
bool StreamArchive::mend(bool starts) {
  if (documents_ != nullptr) documents_->send_missing();  // before records that name them
  restore_counter();
  Common both = compare();
  const std::uint64_t mine = log_.rounds();
  if (both.records == mine) return true;
  if (both.records == both.rounds && (both.proven || both.rounds == 0)) {
    send_again(both);
    return false;
  }
  if (both.records > 0 && both.proven) {
    send_elsewhere(both, starts);
    return false;
  }
  part(
      fmt::format(
          "{} has {}, and {} has {}, but from the first one on, or before those that the server still has, "
          "they differ: the folder belongs to another prefix, or the server lost records and other "
          "processes went on. Nothing was changed. Keep the folder, as its last records may be nowhere "
          "else, and start with another one, which has feedback*.jsonl* and checkpoint of another learner.",
          stream_.client().address().text(), counted(both.rounds, "record"), log_.path().string(), mine),
      std::nullopt, starts);
  return false;
}

/// The server has lost the last records, and no process has given their rounds out again.
void StreamArchive::send_again(Common& both) {
  const std::string where = stream_.client().address().text();
  const std::uint64_t mine = log_.rounds();
  stream_.await(std::max(mine, stream_.rounds()));
  log_warning("{}: The server has {}, and this log {}: sending it records {} to {} again.", where,
              counted(both.rounds, "record"), mine, both.rounds + 1, mine);
  for (std::string_view line; !stopping_ && both.records < mine && both.rest.next(line);) {
    const FeedbackRecord record = parsed(line, both.records + 1, log_.path().string());
    const std::string body(body_of(line));
    if (append_again(stream_, settings_.lists, record, body, &both.chain) == 0)
      return pause(1000);  // so does another one
    both.chain.add(body);
    ++both.records;
  }
  log_warning("{}: The server has {} again.", where, counted(both.records, "record"));
}

/// Other processes have used the rounds of the records that the server had lost.
void StreamArchive::send_elsewhere(const Common& both, bool starts) {
  const std::string where = stream_.client().address().text();
  std::map<std::string, std::pair<std::uint64_t, std::vector<std::uint8_t>>, std::less<>> there;
  for (std::uint64_t round = both.records; round < both.rounds;) {
    const std::vector<StreamRecord> records = stream_.records(round + 1, both.rounds, kRecordsAtOnce);
    if (records.empty()) break;
    for (const StreamRecord& one : records) {
      round = one.round;
      FeedbackRecord record = parsed(record_line(round, one.body), round, where);
      there.emplace(std::move(record.impression), std::pair(round, std::move(record.clicks)));
    }
  }
  FileLog::Reader reader(log_, 0);
  std::uint64_t round = 0;
  for (std::string_view line; reader.next(line);) {
    if (++round <= both.records) continue;
    const FeedbackRecord record = parsed(line, round, log_.path().string());
    const auto known = there.find(record.impression);
    if (known != there.end() && known->second.second == record.clicks) continue;
    const std::uint64_t sent = known != there.end() ? 0
                                                    : append_again(stream_, settings_.lists, record,
                                                                   std::string(body_of(line)), nullptr);
    log_warning("{}: Record {} (impression {}) {}.", log_.path().string(), round, record.impression,
                known != there.end() ? fmt::format("has other clicks than record {} there, which counts",
                                                   known->second.first)
                : sent > 0           ? fmt::format("was sent to the server again, as record {}", sent)
                                     : "was not sent again, as its list has an answer there");
  }
  // The records after the common ones stay for a day.
  trim(both.records);
  part(
      fmt::format("{0}: From record {1} on, this log and {2} differ: the server came back with fewer "
                  "records, and other processes went on without records {1} to {3} of this log. These are "
                  "in the shared log now, under other numbers where messages above say so, so that none is "
                  "lost. This learner has learned another order: start it with --accept-loss, which moves "
                  "the records after {4} to a file beside this log and learns those of the shared log.",
                  log_.path().string(), both.records + 1, where, round, both.records),
      both.records, starts);
}

void StreamArchive::part(const std::string& why, std::optional<std::uint64_t> common, bool starts) {
  if (starts && common) throw ArchiveDiffers(why, *common);
  if (starts) throw IoError(why);
  log_warning("{} It publishes no more models and archives no more records.", why);
  stream_.set_fault(why);
  parted_ = true;
}

/// Perhaps no learner has the lost records: then feedback would wait for ever. Records that come in show
/// that a learner is sending them.
void StreamArchive::give_up_lost(const StreamState& state, bool more) {
  const auto now = std::chrono::steady_clock::now();
  if (more || !stream_.is_behind()) behind_since_ = now;
  const std::uint64_t mine = log_.rounds();
  if (now - behind_since_ < settings_.patience || state.rounds != mine) return;
  log_warning(
      "{}: Records {} to {} were acknowledged, but the server has lost them, and no learner that runs has "
      "them. Feedback is accepted again after record {}. A learner that has them sends them when it "
      "starts.",
      stream_.client().address().text(), mine + 1, stream_.rounds(), mine);
  stream_.stop_awaiting();
}

void StreamArchive::archive() {
  stream_.client().probe();
  if (parted_) {
    pause(100);
    stream_.poll();
    return;
  }
  std::vector<std::string> bodies;
  try {
    bodies = stream_.read(log_.rounds(), kRecordsAtOnce, kReadWait, chain_ ? &*chain_ : nullptr);
  } catch (const RecordsDiffer&) {
    mend(false);
    return;
  }
  const StreamState state = stream_.poll();
  if (!state.rounds) {
    mend(false);
    return;
  }
  try {
    if (documents_ != nullptr) documents_->catch_up();  // has those that the records name
    if (!bodies.empty()) log_.append_all(bodies);
    stream_.set_archived(log_.rounds(), false);
  } catch (const IoError&) {
    stream_.set_archived(log_.rounds(), true);
    throw;
  }
  for (const std::string& body : bodies) {
    if (chain_) chain_->add(body);
  }
  if (!agrees(state)) {
    mend(false);
    return;
  }
  give_up_lost(state, !bodies.empty());
  const std::int64_t now = steady_milliseconds();
  if (now - told_ < kTellMs) return;
  trim(log_.rounds());
  told_ = now;
}

void StreamArchive::publish() {
  pause(20);
  const auto published = learner_.latest();
  if (parted_ || learner_.failure() || stream_.client().is_away()) return pause(100);
  if (stream_.model_round() >= static_cast<std::int64_t>(published->round)) return;
  RankerSource::Snapshot snapshot;
  try {
    snapshot = learner_.snapshot();
  } catch (const Error&) {  // it has failed, and says so
    return pause(100);
  }
  const auto begin = std::chrono::steady_clock::now();
  stream_.publish(snapshot.round, snapshot.bytes);
  const auto took = snapshot.made_in + (std::chrono::steady_clock::now() - begin);
  pause(static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::max<std::chrono::nanoseconds>(kFollowerPublishInterval, kRestPerPublish * took))
          .count()));
}

}  // namespace olrank
