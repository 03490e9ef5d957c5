#include "serve/learner.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "core/error.h"
#include "core/feedback/doc_number.h"
#include "core/io/state_archive.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// While much is waiting to be learned, lists need not follow every round.
constexpr std::chrono::milliseconds kPublishAtLeast{50};

}  // namespace

Learner::Learner(std::unique_ptr<OnlineRanker> ranker, FeedbackLog& log, LearnerSettings settings)
    : ranker_(std::move(ranker)),
      log_(log),
      settings_(std::move(settings)),
      learns_from_unshown_(ranker_->learns_from_unshown()) {
  require_lists_ahead_of_rounds(*ranker_);
  restore();
  reader_ = std::make_unique<FeedbackLog::Reader>(log_, position_);
  publish();
}

void Learner::require_lists_ahead_of_rounds(const OnlineRanker& ranker) {
  if (ranker.freeze()) return;
  throw InvalidArgument(
      "The lists of this kind of ranker belong to the round that learns from them, which a service does "
      "not "
      "know when it ranks: choose another kind.");
}

Learner::~Learner() {
  if (thread_.joinable()) stop(std::chrono::seconds(0));
}

void Learner::restore() {
  if (!std::filesystem::exists(settings_.checkpoint)) return;
  StateReader state =
      read_state_file(settings_.checkpoint, "delete this file, and the service learns its log again");
  if (state.get_text("service.identity") != settings_.identity)
    state.fail("This checkpoint is of another service: its settings are not the ones here.");
  round_ = state.get_one<std::uint64_t>("service.round");
  position_ = state.get_one<std::int64_t>("service.position");
  pairs_ = state.get_one<std::int64_t>("service.pairs");
  ranker_->load(state);
  state.require_end();
  if (round_ > log_.rounds() || position_ > log_.bytes()) {
    state.fail(
        fmt::format("This checkpoint has learned from {} rounds and the log holds {}: it is not the "
                    "log that was learned from.",
                    round_, log_.rounds()));
  }
  restored_round_ = checkpoint_round_ = round_;
}

void Learner::start() {
  log_.on_growth([this] {
    const std::lock_guard lock(mutex_);
    wake_.notify_one();
  });
  thread_ = std::thread([this] { run(); });
}

void Learner::stop(std::chrono::seconds patience) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    deadline_ = SteadyClock::now() + patience;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  log_.on_growth({});
}

void Learner::learn_all() {
  while (consume_next()) {
  }
  publish();
}

void Learner::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::vector<Request> requests = std::exchange(requests_, {});
    const bool over = stopping_ && SteadyClock::now() >= deadline_;
    const bool failed = failure_.has_value();
    lock.unlock();
    for (Request& request : requests) answer(request);
    bool more = false;
    try {
      more = !over && !failed && consume_next();
      if (!more || SteadyClock::now() - publication_ >= kPublishAtLeast) publish();
      if (round_ - checkpoint_round_ >= settings_.checkpoint_every) try_to_write_file();
    } catch (const std::exception& error) {
      const std::string sentence =
          fmt::format("Learning has stopped after round {}: {}", round_, error.what());
      log_warning("{}", sentence);
      const std::lock_guard held(mutex_);
      failure_ = sentence;
    }
    lock.lock();
    if (more || !requests_.empty()) continue;
    // Feedback may have come since the log was read to its end.
    const bool idle = failure_ || static_cast<std::int64_t>(position_) >= log_.bytes();
    if (stopping_ && (idle || over)) break;
    if (stopping_ || !idle) continue;
    if (figures_round_ == round_ || failure_) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, figures_due_);
    }
  }
  lock.unlock();
  if (failure_) return;  // a state half-way through a round is no checkpoint
  if (round_ != checkpoint_round_) try_to_write_file();
}

bool Learner::consume_next() {
  std::string_view line;
  if (!reader_->next(line)) return false;
  if (const auto failure = parse_record(line, record_))
    throw DataError(log_.path().string(), static_cast<std::int64_t>(round_) + 1, failure->column,
                    failure->sentence);
  if (record_.round != round_ + 1) {
    throw IoError(fmt::format("{}: Round {} stands where {} should.", log_.path().string(), record_.round,
                              round_ + 1));
  }
  learn(record_);
  position_ = reader_->position();
  return true;
}

void Learner::learn(const FeedbackRecord& record) {
  std::vector<std::int64_t> numbers(record.docs.size());
  std::vector<std::int32_t> shown(record.clicks.size());
  for (std::size_t doc = 0; doc < numbers.size(); ++doc) {
    numbers[doc] = doc_number(record.query, record.features().doc(static_cast<std::int64_t>(doc)),
                              record.docs[doc].text);
  }
  for (std::size_t rank = 0; rank < shown.size(); ++rank) shown[rank] = static_cast<std::int32_t>(rank);
  RoundContext context{context_, clock_};
  const auto round = static_cast<std::uint32_t>(record.round);
  const LearnReport learned =
      ranker_->learn(context, {round, {round, 0, record.features(), numbers}, shown, record.clicks});
  pairs_ += static_cast<std::int64_t>(learned.pairs.size());
  round_ = record.round;
  published_ = false;
}

/// How sound the covariance is takes a while to tell once it is large: at most a tenth of the time.
bool Learner::refresh_figures() {
  const auto begun = SteadyClock::now();
  if (begun < figures_due_ || figures_round_ == round_) return false;
  figures_ = ranker_->figures(context_);
  figures_round_ = round_;
  const auto ended = SteadyClock::now();
  figures_due_ = ended + 9 * (ended - begun);
  return true;
}

void Learner::publish() {
  const bool refreshed = refresh_figures();
  if (published_ && !refreshed) return;
  auto next = std::make_shared<PublishedRanker>();
  next->ranker = ranker_->freeze();
  next->round = round_;
  next->pairs = pairs_;
  next->figures = figures_;
  published_ = true;
  publication_ = SteadyClock::now();
  std::shared_ptr<const PublishedRanker> before;  // may free much, which no reader should wait for
  const std::lock_guard lock(mutex_);
  before = std::exchange(latest_, std::move(next));
}

std::shared_ptr<const PublishedRanker> Learner::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Learner::State Learner::present_state() const {
  StateWriter state;
  state.put("service.round", round_);
  ranker_->save(state);
  return {round_, pairs_, state.fingerprint()};
}

void Learner::write_file() {
  StateWriter state;
  state.put_text("service.identity", settings_.identity);
  state.put("service.round", round_);
  state.put("service.position", position_);
  state.put("service.pairs", pairs_);
  ranker_->save(state);
  checkpoint_round_ = round_;
  state.write(settings_.checkpoint);
}

void Learner::try_to_write_file() {
  try {
    write_file();
  } catch (const IoError& error) {
    log_warning("There is no checkpoint of round {}. {}", round_, error.what());
  }
}

void Learner::answer(Request& request) {
  try {
    if (request.checkpoint) write_file();
    request.answer.set_value(present_state());
  } catch (...) {
    request.answer.set_exception(std::current_exception());
  }
}

Learner::State Learner::ask(bool checkpoint) {
  std::future<State> answer;
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      if (checkpoint) write_file();
      return present_state();
    }
    if (stopping_) throw Error("The service is stopping.");
    if (failure_ && checkpoint) throw Error(*failure_);
    requests_.push_back({checkpoint, {}});
    answer = requests_.back().answer.get_future();
    wake_.notify_one();
  }
  return answer.get();
}

Learner::State Learner::state() {
  return ask(false);
}

Learner::State Learner::write_checkpoint() {
  return ask(true);
}

std::optional<std::string> Learner::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace olrank
