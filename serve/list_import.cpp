#include "serve/list_import.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/data/normaliser.h"
#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/state_archive.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/saved_trial.h"
#include "logs/documents.h"
#include "logs/list_features.h"
#include "logs/log_reader.h"
#include "models/files/model_file.h"
#include "serve/event_window.h"
#include "serve/file_log.h"
#include "serve/impression_file.h"
#include "serve/own_file.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

FittedNormaliser import_normaliser(const ListImport& request, std::int64_t features, bool by_name) {
  ServiceRequest service;
  service.normalise = request.normalise;
  service.features = features;
  if (!request.model.empty()) service.model = model_file_of(request.model);
  FittedNormaliser normaliser = requested_normaliser(service);
  if (normaliser.features != features && !by_name)
    throw_error<InvalidArgument>("{} has {}, but the model {} takes {}.", request.features.string(),
                                 counted(features, "feature"), request.model, normaliser.features);
  return normaliser;
}

/// Gives lists the inputs of their documents.
class InputJoin {
 public:
  /// `columns` features of each document are in the lists themselves, unless it is 0.
  InputJoin(const ListImport& request, std::int64_t columns, ListImportResult& result)
      : request_(request),
        features_(columns > 0 ? ListFeatures()
                              : ListFeatures::read(request.features, request.source.columns)),
        columns_(columns > 0 ? columns : features_.features()),
        names_(telling_names(features_.names())),
        map_(names_of_model()),
        normaliser_(import_normaliser(request, columns_, !names_.empty() && map_.has_names())),
        result_(result) {
    result_.features = columns_;
    const auto& known = map_.has_names() ? map_.names() : names_;
    const std::vector<std::string> inputs = names_of_inputs(known, normaliser_);
    if (!inputs.empty()) input_names_ = feature_names_text(inputs);
  }

  /// False for a list of which nothing is left.
  bool add_inputs(ShownListRecord& list) {
    FeedbackRecord& record = list.record;
    raw_.clear();
    if (!take_features(list)) return false;
    if (!names_.empty()) {
      record.columns = columns_;
      record.feature_names = feature_names_text(names_);
      record.inputs.swap(raw_);
      if (const std::string wrong = map_.apply(record); !wrong.empty()) fail(list, wrong);
      record.inputs.swap(raw_);
    }
    record.feature_names = input_names_;
    record.columns = normaliser_.inputs();
    const std::int64_t docs = std::ssize(record.docs);
    record.inputs.resize(docs * record.columns);
    normaliser_.apply({raw_.data(), docs, normaliser_.features}, record.inputs.data());
    if (const auto bad = normaliser_.find_bad_input(record.inputs.data(), docs)) {
      fail(list, fmt::format("Feature {} of document '{}' of query '{}' gives the input {:g}, beyond the "
                             "limit of ±{:g}.",
                             bad->feature + 1, excerpt(record.docs[bad->doc].text), excerpt(record.query),
                             bad->value, FittedNormaliser::kLargestInput));
    }
    return true;
  }

 private:
  NamedInputs names_of_model() const {
    NamedInputs inputs;
    if (!request_.model.empty())
      inputs.names =
          telling_names(load_model(model_file_of(request_.model), ModelCode::kRefuse).feature_names);
    inputs.advice = "take its column out of " + request_.features.string();
    return inputs;
  }
  [[noreturn]] void fail(const ShownListRecord& list, const std::string& sentence) const {
    throw DataError(request_.source.lists.string(), list.line, 1, sentence);
  }

  /// The raw features of the documents that have them; the others leave the list.
  bool take_features(ShownListRecord& list) {
    FeedbackRecord& record = list.record;
    std::vector<DocId> docs;
    std::vector<std::uint8_t> clicks;
    for (std::int64_t doc = 0; doc < std::ssize(record.docs); ++doc) {
      DocId& id = record.docs[doc];
      const bool shown = doc < record.shown();
      const float* row = list.features.empty() ? features_.find(record.query, id.text)
                                               : list.features.data() + doc * columns_;
      if (row != nullptr) {
        raw_.insert(raw_.end(), row, row + columns_);
        if (shown) clicks.push_back(record.clicks[doc]);
        docs.push_back(std::move(id));
        continue;
      }
      if (!request_.skip_missing)
        fail(list, fmt::format("Document '{}' of query '{}' has no features in {}: add them, or leave such "
                               "documents out with --skip-missing.",
                               excerpt(id.text), excerpt(record.query), request_.features.string()));
      ++result_.missing_documents;
      if (!shown) continue;
      result_.lost_clicks += record.clicks[doc];
      record.propensity.clear();  // of another list
    }
    record.docs = std::move(docs);
    record.clicks = std::move(clicks);
    return record.shown() > 0;
  }

  const ListImport& request_;
  ListFeatures features_;
  std::int64_t columns_;
  std::vector<std::string> names_;  // of the columns; empty: unknown
  FeatureMap map_;                  // to the raw features of the model
  std::string input_names_;
  FittedNormaliser normaliser_;
  ListImportResult& result_;
  std::vector<float> raw_;  // [docs × features]
};

/// Checks first: what is written could replace what is read, or what somebody else needs.
void require_free_file(const ListImport& request) {
  std::error_code failed;
  for (const fs::path& input : {request.source.lists, request.source.events, request.features}) {
    if (!input.empty() && fs::equivalent(input, request.out, failed))
      throw_error<InvalidArgument>("--out {} is also read: choose another file.", request.out.string());
  }
  require_outside_state(request.out, "--out");
  if (!request.force && fs::is_regular_file(request.out, failed))
    throw_error<InvalidArgument>("'{}' already exists; overwrite it with --force, or choose another file.",
                                 request.out.string());
}

/// How many rounds the checkpoint has learned; nothing without one.
std::optional<std::uint64_t> checkpoint_round(const fs::path& checkpoint) {
  auto bytes = read_own_file(checkpoint);
  if (!bytes) return std::nullopt;
  StateReader state(std::move(*bytes), checkpoint.string(),
                    "delete this file, and the service learns its log again");
  state.get_text("service.identity");
  return state.get_one<std::uint64_t>("service.round");
}

}  // namespace

ListImportResult import_lists(const ListImport& request) {
  require_free_file(request);
  ListImportResult result;
  const auto lists = ShownLists::open(request.source);
  InputJoin join(request, lists->features(), result);
  AtomicFile file(request.out);
  std::unordered_set<std::uint64_t> impressions;  // by hash
  for (ShownListRecord list; lists->next(list);) {
    if (!join.add_inputs(list)) {
      ++result.lost_lists;
      continue;
    }
    FeedbackRecord& record = list.record;
    ++result.lists;
    if (record.impression.empty()) record.impression = fmt::format("imported-{}", result.lists);
    if (!impressions.insert(fingerprint_of(record.impression).low).second)
      throw DataError(
          request.source.lists.string(), list.line, 1,
          fmt::format("An earlier list has the impression '{}', too.", excerpt(record.impression)));
    result.documents += record.shown();
    for (const std::uint8_t click : record.clicks) result.clicks += click;
    file.write(record_line(static_cast<std::uint64_t>(result.lists), record_body(record)));
  }
  result.empty_lists = lists->empty_lists();
  result.stray_clicks = lists->stray_clicks();
  if (result.lists == 0)
    throw_error<InvalidArgument>("{} has no list to import.", request.source.lists.string());
  file.commit();
  return result;
}

nlohmann::ordered_json list_import_json(const ListImport& request, const ListImportResult& result) {
  return {{"out", request.out.string()},
          {"lists", result.lists},
          {"documents", result.documents},
          {"clicks", result.clicks},
          {"features", result.features},
          {"left_out",
           {{"documents_without_features", result.missing_documents},
            {"clicks_on_these", result.lost_clicks},
            {"lists_of_only_these", result.lost_lists},
            {"lists_without_documents", result.empty_lists},
            {"clicks_without_list", result.stray_clicks}}}};
}

std::string list_import_text(const ListImport& request, const ListImportResult& result) {
  std::string text =
      fmt::format("Wrote {}: {} with {} and {}\n", request.out.string(), counted(result.lists, "list"),
                  counted(result.documents, "document"), counted(result.clicks, "click"));
  if (result.missing_documents > 0)
    text += fmt::format("Left out for want of features: {} with {}, and {} without any other document.\n",
                        counted(result.missing_documents, "document"), counted(result.lost_clicks, "click"),
                        counted(result.lost_lists, "list"));
  if (result.empty_lists > 0)
    text += fmt::format("Left out: {} without documents.\n", counted(result.empty_lists, "list"));
  if (result.stray_clicks > 0)
    text += fmt::format("Left out: {} of no list.\n", counted(result.stray_clicks, "click"));
  return text;
}

LogCompaction compact_log(const fs::path& state) {
  require_service(state);
  StateFolder folder(state);
  LogCompaction done;
  for (const fs::path& file : {folder.log(), state / DocumentVersions::kFile}) {
    FileLog log(file, 1);
    if (!log.text()->exists()) continue;
    if (file == folder.log()) done.records = log.rounds() - log.dropped();
    done.bytes_before += log.text()->bytes_on_disk();
    folder.require_lock();
    log.compact({});
    done.bytes += log.text()->bytes_on_disk();
  }
  folder.accept();
  return done;
}

LogCut cut_log(const fs::path& state, std::uint64_t to_round, bool dry_run) {
  if (!fs::is_directory(state)) throw IoError("read", state.string(), fs::exists(state) ? ENOTDIR : ENOENT);
  require_service(state);
  StateFolder folder(state);
  FileLog log(folder.log(), 1, false, FileLog::Access::kWrite, to_round);
  LogCut cut;
  cut.to_round = to_round;
  if (log.survey().rest == LogSurvey::Rest::kLater) {
    cut.records = log.survey().lost_records;
    cut.bytes = log.survey().rest_bytes;
    cut.moved_to = log.next_cut_path();
  }
  if (const auto learned = checkpoint_round(folder.checkpoint()); learned && *learned > to_round) {
    cut.checkpoint_round = learned;
    if (log.dropped() > 0) {
      throw_error<InvalidArgument>(
          "--to-round {}: Rounds 1 to {} were dropped, so that only a checkpoint tells what was learned "
          "then, "
          "and that of {} is later: restore a backup of that time.",
          to_round, log.dropped(), state.string());
    }
    cut.checkpoint_moved_to = unused_path(folder.checkpoint().string() + ".set-aside");
  }
  if (dry_run) return cut;
  folder.require_lock();
  log.begin_writing();
  if (cut.records > 0) {
    EventWindow::set_journals_aside(state);
    ImpressionFile::set_aside(state);
  }
  if (cut.checkpoint_round) {
    std::error_code failed;
    fs::rename(folder.checkpoint(), cut.checkpoint_moved_to, failed);
    if (failed) throw IoError("rename", folder.checkpoint().string(), failed.value());
  }
  folder.accept();
  return cut;
}

std::uint64_t copy_rounds(const fs::path& log, std::uint64_t from_round,
                          std::optional<std::uint64_t> to_round, const fs::path& copy) {
  LogReader reader(log);
  std::error_code failed;
  if (fs::equivalent(reader.file(), copy, failed))
    throw_error<InvalidArgument>("--out {} is the log itself: choose another file.", copy.string());
  require_outside_state(copy, "--out");
  AtomicFile file(copy);
  FeedbackRecord record;
  std::uint64_t copied = 0;
  const auto is_wanted = [&record, from_round, to_round] {
    return record.round >= from_round && (!to_round || record.round <= *to_round);
  };
  for (bool more = true; more;) {
    record.round = 0;
    try {
      more = reader.next(record);
    } catch (const DataError&) {  // a damaged record costs no others
      if (record.round == 0 || is_wanted()) throw;
    }
    if (!more || !is_wanted()) continue;
    if (!reader.line().starts_with("{\"round\":") || !has_valid_check(reader.line())) {
      throw DataError(reader.file(), reader.number(), 1,
                      "The line is no record of a service with a valid checksum, so it is not copied.");
    }
    // The copy has no documents beside it.
    const std::string whole = reader.by_version() ? record_body(record) : std::string();
    file.write(record_line(++copied, whole.empty() ? body_of(reader.line()) : whole));
  }
  if (copied == 0) {
    throw_error<InvalidArgument>("{} has no record of a round {}.", reader.file(),
                                 to_round ? fmt::format("from {} to {}", from_round, *to_round)
                                          : fmt::format("from {}", from_round));
  }
  file.commit();
  return copied;
}

}  // namespace olrank
