#include "serve/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/feedback/preference_pairs.h"
#include "core/io/state_archive.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/api_error.h"
#include "serve/own_file.h"
#include "serve/service_identity.h"

namespace olrank {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// While the learner catches up, it publishes at this interval instead of after every round.
constexpr std::chrono::milliseconds kPublishInterval{50};
/// Work that grows with the state (copies for requests, summaries, checkpoints) takes at most a tenth of
/// the time each.
constexpr int kRestPerWork = 9;
/// Figures are for people, who look at them now and then: a fiftieth.
constexpr int kRestPerFigures = 49;
constexpr std::string_view kStopping = "The service is stopping.";

/// When work that has just ended may be done again, so that it takes one part in `rest` + 1 of the time.
SteadyClock::time_point rested(SteadyClock::time_point begin, int rest) {
  const auto end = SteadyClock::now();
  return end + rest * (end - begin);
}

/// A record's documents begin with those shown, best first.
std::vector<std::int32_t> shown_docs(const FeedbackRecord& record) {
  std::vector<std::int32_t> shown(record.clicks.size());
  std::iota(shown.begin(), shown.end(), 0);
  return shown;
}

}  // namespace

class Learner::OwnLists : public FrozenRanker {
 public:
  explicit OwnLists(Learner& learner) : learner_(learner) {}
  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    learner_.rank(context, task, ranking);
  }
  ModelTensors model() const override { return learner_.model().tensors; }

 private:
  Learner& learner_;
};

Learner::Learner(std::unique_ptr<OnlineRanker> ranker, FileLog& log, LearnerSettings settings)
    : ranker_(std::move(ranker)),
      log_(log),
      settings_(std::move(settings)),
      names_(settings_.names),
      learns_from_unshown_(ranker_->learns_from_unshown()),
      makes_lists_(ranker_->makes_lists()) {
  require_lists_ahead_of_rounds(*ranker_);
  if (settings_.arms) arms_.emplace(*settings_.arms);
  if (settings_.schema && settings_.schema->has_counters()) counters_.emplace(*settings_.schema);
  restore();
  if (position_ < log_.begin()) {
    throw_error<IoError>(
        "{}: Rounds 1 to {} were dropped from this log, and no checkpoint that fits has learned them. Put "
        "the checkpoint back that belongs to this log, or begin a new folder with --import-log {}, which "
        "learns the {} that are left.",
        log_.path().string(), log_.dropped(), log_.path().string(),
        counted(log_.rounds() - log_.dropped(), "round"));
  }
  log_.allow_dropping(restored_round_);
  if (settings_.checks_log) require_fitting_log();
  reader_ = std::make_unique<FileLog::Reader>(log_, position_);
  publish();
}

void Learner::require_lists_ahead_of_rounds(const OnlineRanker& ranker) {
  if (ranker.makes_lists() || ranker.freeze()) return;
  throw InvalidArgument(
      "This kind of ranker ties each list to the round that learns from it, which a service does not know "
      "when it ranks. Choose another kind.");
}

Learner::~Learner() {
  if (thread_.joinable()) stop(std::chrono::seconds(0));
}

void Learner::restore() {
  outdated_ = superseded_ = settings_.learns_again;  // also what another learner will have saved meanwhile
  auto bytes = read_own_file(settings_.checkpoint);
  if (!bytes) return;
  StateReader state(std::move(*bytes), settings_.checkpoint.string(),
                    "delete this file, and the service learns its log again");
  const std::string identity = state.get_text("service.identity");
  if (!settings_.learns_again && !learn_alike(identity, settings_.identity, settings_.checkpoint.string()))
    state.fail("This checkpoint belongs to a service with other settings.");
  round_ = state.get_one<std::uint64_t>("service.round");
  position_ = state.get_one<std::int64_t>("service.position");
  pairs_ = state.get_one<std::int64_t>("service.pairs");
  // Checkpoints of earlier versions lack it.
  if (state.is_next("service.last_check")) last_check_ = state.get_text("service.last_check");
  const std::string wrong = contradiction(last_check_);
  if (!wrong.empty() || settings_.learns_again) {
    // A log that ends earlier is learned alone, unless nothing is left of it.
    const bool is_newer = round_ > log_.rounds() && log_.rounds() > 0;
    if (is_newer && !settings_.accept_loss) lost_ = round_ - log_.rounds();
    if (!wrong.empty() && !is_newer && !settings_.accept_loss) {
      state.fail(
          fmt::format("{} Nothing was changed. Restore the log that belongs to this checkpoint. If it is "
                      "lost, start with "
                      "--accept-loss: that moves the checkpoint aside, and the service learns the {} of "
                      "this log again.",
                      wrong, counted(log_.rounds(), "record")));
    }
    outdated_ = true;
    superseded_ = superseded_ && wrong.empty();
    round_ = 0;
    position_ = pairs_ = 0;
    last_check_.clear();
    return;
  }
  ranker_->load(state);
  // Only checkpoints after a skipped round have it.
  if (state.is_next("service.skipped")) skipped_ = state.get_one<std::uint64_t>("service.skipped");
  if (settings_.exposure) load_fields(exposure_, state, *settings_.exposure);
  if (counters_) counters_->load(state);
  restored_round_ = checkpoint_round_ = round_;
  // The arms come last, if there were any, and may have had another plan.
  if (arms_ ? arms_->load(state) : !state.is_next("arms.plan")) {
    state.require_end();
  } else if (arms_) {
    count_arms_again();
  }
}

void Learner::count_arms_again() {
  if (log_.dropped() > 0)
    log_info("{}: The figures of the arms lack rounds 1 to {}, which were dropped.", log_.path().string(),
             log_.dropped());
  FileLog::Reader reader(log_, log_.begin());
  FeedbackRecord record;
  for (std::string_view line; reader.position() < position_ && reader.next(line);) {
    if (const auto failure = parse_record(line, record))
      throw DataError(log_.path().string(), 1, failure->column, failure->message);
    arms_->observe(record);
  }
}

std::string Learner::contradiction(const std::string& last_check) const {
  if (round_ > log_.rounds() || position_ > log_.bytes()) {
    return fmt::format(
        "This checkpoint was made after {} rounds, but the log holds {}: the log was cut, or is "
        "another one.",
        round_, log_.rounds());
  }
  if (round_ == 0 && position_ == 0) return {};
  const std::string line = log_.line_before(position_);
  const bool same_round = line.starts_with(fmt::format("{{\"round\":{},", round_));
  if (same_round && (last_check.empty() || check_of(line) == last_check)) return {};
  return fmt::format(
      "This checkpoint was made after round {} of another log: the record there is not the one "
      "that it learned.",
      round_);
}

void Learner::begin_writing() {
  log_.begin_writing();
  if (!std::exchange(outdated_, false) || !std::filesystem::exists(settings_.checkpoint)) return;
  std::error_code failed;
  if (superseded_) {
    std::filesystem::remove(settings_.checkpoint, failed);
    if (failed) throw IoError("remove", settings_.checkpoint.string(), failed.value());
    return log_info("{}: This checkpoint had other features. Removed it; learning all {} again.",
                    settings_.checkpoint.string(), counted(log_.rounds(), "record"));
  }
  const std::filesystem::path aside = unused_path(settings_.checkpoint.string() + ".set-aside");
  std::filesystem::rename(settings_.checkpoint, aside, failed);
  if (failed) throw IoError("rename", settings_.checkpoint.string(), failed.value());
  std::string why = "The log does not cover this checkpoint.";
  if (lost_ > 0)
    why = fmt::format("This checkpoint is newer than the log, which lacks {} that it has learned.",
                      counted(lost_, "list"));
  log_warning("{}: {} Moved it to {}; learning all {} again.", settings_.checkpoint.string(), why,
              aside.string(), counted(log_.rounds(), "record"));
}

void Learner::start() {
  begin_writing();
  stopping_ = ended_ = false;
  log_.on_growth([this] {
    const std::lock_guard lock(mutex_);
    wake_.notify_one();
  });
  thread_ = std::thread([this] { run(); });
}

bool Learner::stop(std::chrono::seconds timeout, bool saves) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    saves_at_end_ = saves;
    deadline_ = SteadyClock::now() + timeout;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  log_.on_growth({});
  return !unsaved_;
}

void Learner::learn_all() {
  if (log_.access() == FileLog::Access::kWrite) begin_writing();
  while (consume_next()) {
  }
  publish();
}

bool Learner::catch_up(const std::atomic<bool>& stop) {
  while (!stop && consume_next()) {
    if (publish_due(true)) publish();
  }
  publish();
  return !stop;
}

void Learner::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::vector<Request> requests = take_due_requests();
    const std::vector<WaitingList*> lists = std::exchange(lists_, {});
    const bool expired = stopping_ && SteadyClock::now() >= deadline_;
    const bool failed = failure_.has_value();
    lock.unlock();
    if (!lists.empty()) make_lists(lists);
    for (Request& request : requests) answer(request);
    bool more = false;
    try {
      more = !expired && !failed && consume_next();
      if (publish_due(more)) publish();
      if (!failed && has_rounds_for_checkpoint() && SteadyClock::now() >= checkpoint_due_)
        save_due_checkpoint();
    } catch (const std::exception& error) {
      const std::string message = fmt::format("Learning stopped after round {}: {}", round_, error.what());
      log_warning("{}", message);
      const std::lock_guard held(mutex_);
      failure_ = message;
    }
    lock.lock();
    if (more || !requests_.empty() || !lists_.empty()) continue;
    // Feedback may have arrived since we reached the end of the log.
    const bool idle = failure_ || position_ >= log_.bytes();
    if (stopping_ && (idle || expired)) break;
    if (stopping_ || !idle) continue;
    if (const auto due = next_due()) {
      wake_.wait_until(lock, *due);
    } else {
      wake_.wait(lock);
    }
  }
  const bool failed = failure_.has_value();
  ended_ = true;
  lock.unlock();
  if (!failed) finish();  // otherwise the state may be mid-round
}

/// The lists follow from what the ranker knows after the latest round; a failure concerns all lists.
void Learner::make_lists(std::span<WaitingList* const> lists) {
  std::vector<ListRequest> requests;
  std::exception_ptr failed;
  try {
    for (const WaitingList* list : lists) requests.push_back(list->request);
    if (!failure()) publish();
    ranker_->make_lists(context_, requests);
  } catch (...) {
    failed = std::current_exception();
  }
  const std::shared_ptr<const PublishedRanker> made_by = latest();
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    lists[i]->request.failure = failed ? failed : requests.at(i).failure;
    lists[i]->published = made_by;
  }
  listed_.notify_all();
}

std::shared_ptr<const PublishedRanker> Learner::rank(ExecutionContext& context, const RankingTask& task,
                                                     Ranking& ranking) {
  if (!makes_lists_) return RankerSource::rank(context, task, ranking);
  WaitingList list{{&task, &ranking}};
  std::unique_lock lock(mutex_);
  if (ended_) throw ApiError(503, "", std::string(kStopping));
  if (!thread_.joinable()) {
    lock.unlock();
    WaitingList* const only = &list;
    make_lists(std::span(&only, 1));
  } else {
    lists_.push_back(&list);
    wake_.notify_one();
    listed_.wait(lock, [&list] { return list.published != nullptr; });
  }
  if (list.request.failure) std::rethrow_exception(list.request.failure);
  return std::move(list.published);
}

RankerSource::Model Learner::model() {
  if (!makes_lists_) return RankerSource::model();
  return request(Wanted::kModel).model;
}

/// Requests for a checkpoint or a snapshot are due at once. While there is feedback to learn, the others
/// wait until a summary, which reads the whole state, has cost a tenth of the time.
std::vector<Learner::Request> Learner::take_due_requests() {
  const bool learns = !failure_ && !stopping_ && position_ < log_.bytes();
  if (!learns || SteadyClock::now() >= summary_due_) return std::exchange(requests_, {});
  const auto waiting = std::stable_partition(requests_.begin(), requests_.end(), [](const Request& one) {
    return one.wanted != Wanted::kSummary;
  });
  std::vector<Request> due(std::make_move_iterator(requests_.begin()), std::make_move_iterator(waiting));
  requests_.erase(requests_.begin(), waiting);
  return due;
}

std::optional<SteadyClock::time_point> Learner::next_due() const {
  if (failure_) return std::nullopt;
  std::optional<SteadyClock::time_point> due;
  if (!published_ || figures_round_ != round_)
    due = published_ ? std::max(figures_due_, publish_due_) : publish_due_;
  if (has_rounds_for_checkpoint()) due = due ? std::min(*due, checkpoint_due_) : checkpoint_due_;
  return due;
}

void Learner::finish() {
  try {
    // First, as copies for requests may fail.
    if (saves_at_end_ && (round_ != checkpoint_round_ || unsaved_)) try_save_checkpoint(true);
    publish();
  } catch (const std::exception& error) {
    log_warning("The end of learning after round {} failed: {}", round_, error.what());
  }
}

std::string Learner::take(std::string_view line, std::uint64_t number, FeedbackRecord& record) {
  const auto refuse = [&](const std::string& message, std::int64_t column = 1) {
    throw DataError(log_.path().string(), static_cast<std::int64_t>(number), column, message);
  };
  if (const auto failure = parse_record(line, record)) refuse(failure->message, failure->column);
  if (!record.versions.empty() && settings_.documents == nullptr)
    refuse("The record names documents by their versions, and this process has none.");
  if (settings_.documents != nullptr) {
    bool lacks = false;
    if (std::string wrong = settings_.documents->apply(record, &lacks); !wrong.empty()) {
      if (lacks && settings_.skips_lost_documents) return wrong;
      refuse(wrong);
    }
  }
  if (const std::string wrong = names_.apply(record); !wrong.empty()) refuse(wrong);
  if (settings_.inputs != 0 && record.columns != settings_.inputs) {
    refuse(
        fmt::format("The record has {} per document, but the model expects {}: the log belongs to "
                    "another service.",
                    counted(record.columns, "input"), settings_.inputs));
  }
  if (settings_.exposure && record.groups.empty())
    refuse("The record has no 'groups', but the service has: the log belongs to another service.");
  for (const DocGroup group : record.groups) {
    if (!settings_.exposure || index_of(group) < settings_.exposure->groups()) continue;
    refuse(
        fmt::format("The record has a document of group {}, but the service has the groups {}: the log "
                    "belongs to another service.",
                    letter_of(group), letters_of(settings_.exposure->groups())));
  }
  return {};
}

/// Every record that is still to be learned. Records of earlier versions without unshown documents may
/// belong to lists that showed all of them, but some record of such a service has them.
void Learner::require_fitting_log() {
  FileLog::Reader rest(log_, position_);
  FeedbackRecord record;
  bool has_unshown = !learns_from_unshown_;
  std::uint64_t round = round_;
  logged_exposure_ = exposure_;
  for (std::string_view line; rest.next(line);) {
    ++round;
    take(line, round, record);
    if (settings_.exposure)
      logged_exposure_.observe(*settings_.exposure, record.groups, shown_docs(record));
    has_unshown = has_unshown || record.has_unshown;
  }
  require_documents();
  if (has_unshown || round == round_) return;
  throw DataError(log_.path().string(), static_cast<std::int64_t>(round_) + 1, 1,
                  "The records have no 'unshown' documents, which this kind of ranker requires: the log "
                  "belongs to another service.");
}

/// A documents' log that was lost or cut would begin its versions again, with other numbers. The latest
/// records that the checkpoint has tell of it.
void Learner::require_documents() {
  constexpr std::uint64_t kLooked = 100;
  std::int64_t end = position_;
  FeedbackRecord record;
  for (std::uint64_t round = round_; settings_.documents != nullptr && round + kLooked > round_; --round) {
    const std::string line = log_.line_before(end);
    if (line.empty()) return;
    end -= std::ssize(line) + 1;
    if (line.find("\"versions\":[") == std::string::npos) continue;
    take(line, round, record);
    return;
  }
}

bool Learner::consume_next() {
  std::string_view line;
  if (!reader_->next(line)) return false;
  const std::string lost = take(line, round_ + 1, record_);
  if (record_.round != round_ + 1) {
    throw_error<IoError>("{}: Found round {} where round {} was expected.", log_.path().string(),
                         record_.round, round_ + 1);
  }
  summary_.reset();
  if (lost.empty()) {
    learn(record_);
  } else {
    if (arms_) arms_->observe(record_);
    skip(lost);
    round_ = record_.round;
    published_ = false;
  }
  last_check_ = check_of(line);
  position_ = reader_->position();
  return true;
}

void Learner::learn(const FeedbackRecord& record) {
  std::vector<std::int64_t> numbers(record.docs.size());
  const std::vector<std::int32_t> shown = shown_docs(record);
  std::vector<std::int64_t> names(record.docs.size());
  for (std::int64_t doc = 0; doc < std::ssize(numbers); ++doc) {
    numbers[doc] = doc_number(record.query, record.features().doc(doc), record.docs[doc].text);
    names[doc] = name_number(record.docs[doc].text);
  }
  RoundContext context{context_, clock_};
  const auto round = static_cast<std::uint32_t>(record.round);
  const QueryIdentity identity{name_number(record.query), names};
  QueryDocs query{round, 0, record.features(), numbers};
  query.identity = &identity;
  if (arms_ && arms_->observe(record)) {
    const ArmReport::Change change = arms_->report().changes.back();
    log_info("Round {}: The learner's share of the traffic goes from {:g} to {:g} %: {}.", change.round,
             change.from, change.to, change.reason);
  }
  FairRound fair;
  if (settings_.exposure) {
    fair = {record.groups, &*settings_.exposure, exposure_.unfairness()};
    query.fair = &fair;
    exposure_.observe(*settings_.exposure, record.groups, shown);
  }
  try {
    const LearnReport learned =
        ranker_->learn(context, {round, query, shown, record.clicks, record.rewards});
    pairs_ += std::ssize(learned.pairs);
  } catch (const NumericError& error) {
    skip(error.what());
  }
  if (counters_) counters_->observe(record);
  round_ = record.round;
  published_ = false;
}

/// The log tells the 1st, 2nd, 4th, 8th and so on of many skipped rounds.
void Learner::skip(const std::string& reason) {
  ++skipped_;
  if (!std::has_single_bit(skipped_)) return;
  log_warning("Skipped feedback {} ({} skipped so far), which changes nothing: {}", record_.round, skipped_,
              reason);
}

/// Figures such as the drift of a large covariance are slow to compute.
bool Learner::refresh_figures() {
  const auto begin = SteadyClock::now();
  if (begin < figures_due_ || figures_round_ == round_) return false;
  figures_ = ranker_->figures(context_);
  figures_round_ = round_;
  figures_due_ = rested(begin, kRestPerFigures);
  return true;
}

bool Learner::publish_due(bool more) const {
  const auto now = SteadyClock::now();
  return now >= publish_due_ && (!more || now - published_at_ >= kPublishInterval);
}

void Learner::publish() {
  const bool refreshed = refresh_figures();
  if (published_ && !refreshed) return;
  const auto begin = SteadyClock::now();
  auto next = std::make_shared<PublishedRanker>();
  next->ranker = makes_lists_ ? std::make_shared<const OwnLists>(*this) : ranker_->freeze();
  next->round = round_;
  next->pairs = pairs_;
  next->skipped = skipped_;
  next->figures = figures_;
  if (arms_) next->arms = arms_->report();
  published_ = true;
  published_at_ = SteadyClock::now();
  publish_due_ = published_at_ + kRestPerWork * (published_at_ - begin);
  std::shared_ptr<const PublishedRanker> previous;  // destroyed after the lock: freeing it may be slow
  const std::lock_guard lock(mutex_);
  previous = std::exchange(latest_, std::move(next));
}

std::shared_ptr<const PublishedRanker> Learner::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Learner::State Learner::present_state() const {
  StateWriter state;
  state.put("service.round", round_);
  ranker_->save(state);
  if (counters_) counters_->save(state);
  return {round_, pairs_, skipped_, state.fingerprint()};
}

void Learner::save_checkpoint() {
  StateWriter state;
  state.put_text("service.identity", settings_.identity);
  state.put("service.round", round_);
  state.put("service.position", position_);
  state.put("service.pairs", pairs_);
  state.put_text("service.last_check", last_check_);
  ranker_->save(state);
  if (skipped_ > 0) state.put("service.skipped", skipped_);
  if (settings_.exposure) save_fields(exposure_, state, *settings_.exposure);
  if (counters_) counters_->save(state);
  if (arms_) arms_->save(state);
  begin_writing();
  log_.require_writable();
  state.write(settings_.checkpoint);
  log_.allow_dropping(round_);
  checkpoint_round_ = round_;
}

void Learner::try_save_checkpoint(bool last) {
  try {
    save_checkpoint();
    if (std::exchange(unsaved_, false)) log_warning("Saved the checkpoint of round {} again.", round_);
  } catch (const StateLost&) {  // the service is about to stop and says why
  } catch (const IoError& error) {
    if (!std::exchange(unsaved_, true) || last)
      log_warning("Could not save the checkpoint of round {}. {}", round_, error.what());
  }
}

bool Learner::has_rounds_for_checkpoint() const {
  return round_ - checkpoint_round_ >= settings_.checkpoint_every;
}

/// While it catches up, or with a large state, rounds alone would have it save most of the time.
void Learner::save_due_checkpoint() {
  const auto begin = SteadyClock::now();
  try_save_checkpoint(false);
  checkpoint_round_ = round_;  // also where it failed before it wrote
  checkpoint_due_ = rested(begin, kRestPerWork);
}

void Learner::answer(Request& request) {
  try {
    if (request.wanted == Wanted::kCheckpoint) save_checkpoint();
    if (!failure()) publish();  // so that who knows the round can ask for its lists
    if (const auto reason = failure(); reason && request.wanted == Wanted::kSnapshot) throw Error(*reason);
    request.answer.set_value(made(request.wanted));
  } catch (...) {
    request.answer.set_exception(std::current_exception());
  }
}

Learner::Answer Learner::made(Wanted wanted) {
  if (wanted == Wanted::kModel) return {{}, {}, {round_, ranker_->model()}};
  const auto begin = SteadyClock::now();
  if (wanted == Wanted::kSnapshot) {
    Snapshot snapshot{round_, snapshot_bytes(*ranker_, *latest_, arms_, counters())};
    snapshot.made_in = SteadyClock::now() - begin;
    return {{}, std::move(snapshot)};
  }
  if (!summary_) {
    summary_ = present_state();
    summary_due_ = rested(begin, kRestPerWork);
  }
  return {*summary_};
}

Learner::Answer Learner::request(Wanted wanted) {
  std::future<Answer> answer;
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      if (wanted == Wanted::kCheckpoint) save_checkpoint();
      return made(wanted);
    }
    if (stopping_) throw Error(std::string(kStopping));
    if (failure_ && wanted != Wanted::kSummary && wanted != Wanted::kModel) throw Error(*failure_);
    requests_.push_back({wanted, {}});
    answer = requests_.back().answer.get_future();
    wake_.notify_one();
  }
  return answer.get();
}

std::optional<std::string> Learner::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace olrank
