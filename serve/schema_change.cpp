#include "serve/schema_change.h"

#include <fmt/format.h>

#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "serve/api_error.h"
#include "serve/own_file.h"

namespace olrank {

std::optional<SchemaPair> SchemaPair::read(const std::filesystem::path& file) {
  const auto text = read_own_file(file);
  if (!text) return std::nullopt;
  const nlohmann::ordered_json pair = try_parse_json(*text);
  const auto before = pair.find("before");
  const auto after = pair.find("after");
  if (before == pair.end() || after == pair.end() || !before->is_string() || !after->is_string())
    throw DataError(file.string(), 1, 1,
                    "The file has no two schemas: remove it, and change the schema again.");
  return SchemaPair{before->get<std::string>(), after->get<std::string>()};
}

void SchemaPair::write(const std::filesystem::path& file) const {
  write_file_atomically(
      file, fmt::format("{{\"before\":{},\"after\":{}}}\n", json_string(before), json_string(after)));
}

std::string SchemaChange::put(const std::string& toml, bool dry_run) {
  ResolvedService service;
  std::string present;
  try {
    const std::string schema = FeatureSchema::parse(toml, "schema").text();
    {
      const std::lock_guard lock(mutex_);
      require_rest();
      present = parts_.present;
    }
    if (schema != present) service = parts_.plan(schema);
  } catch (const InvalidArgument& error) {
    constexpr std::string_view kFlag = "--schema: ";
    const std::string_view what = error.what();
    throw ApiError(422, "schema", std::string(what.starts_with(kFlag) ? what.substr(kFlag.size()) : what));
  }
  const std::string change = service.change.empty() ? "keeps all" : service.change;
  const std::string answer =
      fmt::format("{{\"dry_run\":{},\"change\":{},\"rounds\":{}}}\n", dry_run,
                  json_string("The schema " + change + "."), service.change.empty() ? 0 : parts_.rounds());
  if (!dry_run && !service.change.empty()) begin(std::move(service));
  return answer;
}

/// The mutex is held.
void SchemaChange::require_rest() const {
  if (!service_) return;
  throw ApiError(
      409, "",
      "The service learns its log under another schema already: ask GET /v1/schema, and wait until "
      "that one has taken over.")
      .with_code("schema_changing");
}

void SchemaChange::begin(ResolvedService service) {
  const std::lock_guard lock(mutex_);
  require_rest();
  if (stopping_) throw ApiError(503, "", "The service is stopping.").retry_after(1);
  try {
    const SchemaPair pair{parts_.present, service.identity.feature_schema};
    const auto pending = SchemaPair::read(parts_.file);
    if (pending && pending->after == parts_.present)
      throw ApiError(409, "",
                     "The stored documents still have the schema before, as the disk was full: start the "
                     "service again once it has space, and then change the schema.")
          .with_code("schema_changing");
    if (pending != pair) pair.write(parts_.file);
  } catch (const IoError& error) {
    throw ApiError(507, "", error.what());
  }
  if (thread_.joinable()) thread_.join();
  log_info("The schema {}. The {} of the log are learned again, while lists are made as before.",
           service.change, counted(parts_.rounds(), "round"));
  other_ = std::make_shared<const FeatureSchema>(
      FeatureSchema::parse(service.identity.feature_schema, "schema"));
  service_ = std::move(service);
  failure_.clear();
  caught_up_ = false;
  thread_ = std::thread([this] { run(); });
}

void SchemaChange::run() {
  try {
    std::unique_ptr<Learner> learner = parts_.make(*service_);
    Learner& learning = *learner;
    {
      const std::lock_guard lock(mutex_);
      learner_ = std::move(learner);
    }
    if (!learning.catch_up(stopping_)) return;
    const std::lock_guard lock(mutex_);
    caught_up_ = true;
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void SchemaChange::resume() {
  const auto pair = SchemaPair::read(parts_.file);
  if (!pair || pair->after == parts_.present) return;  // its documents wait for the disk
  try {
    begin(parts_.plan(pair->after));
  } catch (const Error& error) {
    fail(error.what());
  }
}

std::string SchemaChange::json() const {
  const std::lock_guard lock(mutex_);
  std::string out = "{\"schema\":null,\"digest\":null,\"columns\":null";
  if (!parts_.present.empty()) {
    const FeatureSchema present = FeatureSchema::parse(parts_.present, "service");
    out = fmt::format("{{\"schema\":{},\"digest\":\"{}\",\"columns\":[", json_string(parts_.present),
                      present.digest());
    for (const std::string& column : present.columns())
      out += (out.back() == '[' ? "" : ",") + json_string(column);
    out += ']';
  }
  out += ",\"next\":null";
  if (service_) {
    out.resize(out.size() - 4);
    out += fmt::format("{{\"schema\":{},\"change\":{},\"rounds\":{},\"log_rounds\":{}}}",
                       json_string(service_->identity.feature_schema),
                       json_string("The schema " + service_->change + "."),
                       learner_ ? learner_->latest()->round : 0, parts_.rounds());
  }
  return out + ",\"failure\":" + (failure_.empty() ? "null" : json_string(failure_)) + "}\n";
}

std::shared_ptr<const FeatureSchema> SchemaChange::other() const {
  const std::lock_guard lock(mutex_);
  return other_;
}

bool SchemaChange::is_ready() const {
  const std::lock_guard lock(mutex_);
  return caught_up_;
}

std::optional<SchemaChange::Learned> SchemaChange::take() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(caught_up_, false)) return std::nullopt;
  return Learned{*service_, std::move(learner_)};
}

void SchemaChange::finish(const ServiceIdentity& now, bool has_documents) {
  const std::lock_guard lock(mutex_);
  other_.reset();
  if (!parts_.present.empty())
    other_ = std::make_shared<const FeatureSchema>(FeatureSchema::parse(parts_.present, "service"));
  parts_.present = now.feature_schema;
  service_.reset();
  std::error_code failed;
  if (has_documents) std::filesystem::remove(parts_.file, failed);
}

void SchemaChange::fail(const std::string& reason) {
  log_warning("The service keeps its schema. {}", reason);
  const std::lock_guard lock(mutex_);
  failure_ = reason;
  learner_.reset();
  service_.reset();
  other_.reset();
  std::error_code failed;
  std::filesystem::remove(parts_.file, failed);
}

void SchemaChange::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace olrank
