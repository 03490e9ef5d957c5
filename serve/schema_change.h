#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "serve/feature_schema.h"
#include "serve/learner.h"
#include "serve/service_setup.h"

namespace olrank {

/// Two schemas of a service. A file of its folder has them while one takes the place of the other, so that
/// a start after a kill goes on.
struct SchemaPair {
  std::string before;  // as FeatureSchema::text(); empty without one
  std::string after;

  static std::optional<SchemaPair> read(const std::filesystem::path& file);
  void write(const std::filesystem::path& file) const;
  friend bool operator==(const SchemaPair&, const SchemaPair&) = default;
};

/// The change of a running service's schema: a second learner learns the whole log under the new schema, on
/// a thread of its own, while the first one goes on. Thread-safe.
class SchemaChange {
 public:
  struct Parts {
    std::filesystem::path file;  // of the SchemaPair
    std::string present;         // schema
    /// Throws InvalidArgument for a schema that the service cannot have.
    std::function<ResolvedService(const std::string& schema)> plan;
    /// Makes a learner of the log that has learned nothing yet.
    std::function<std::unique_ptr<Learner>(const ResolvedService&)> make;
    std::function<std::uint64_t()> rounds;  // of the log
  };
  explicit SchemaChange(Parts parts) : parts_(std::move(parts)) {}
  ~SchemaChange() { stop(); }

  /// PUT /v1/schema: says how the schema would change, and unless it is a `dry_run` begins. Throws
  /// ApiError.
  std::string put(const std::string& toml, bool dry_run);
  /// GET /v1/schema.
  std::string json() const;
  /// Goes on with the change that a file tells of.
  void resume();
  /// The schema that is being learned, or after it has taken over the one before; null without one.
  /// Requests may be written for it.
  std::shared_ptr<const FeatureSchema> other() const;

  struct Learned {
    ResolvedService service;
    std::unique_ptr<Learner> learner;
  };
  /// Whether the learner has caught up with the log.
  bool is_ready() const;
  /// The learner once it has caught up with the log; then finish() or fail() has to follow.
  std::optional<Learned> take();
  /// Without `has_documents` the next start has to change them.
  void finish(const ServiceIdentity& now, bool has_documents);
  void fail(const std::string& reason);
  /// Ends the thread. The next start goes on with the change.
  void stop();

 private:
  /// Throws ApiError if a change is under way, or the disk does not take the file.
  void begin(ResolvedService service);
  void require_rest() const;
  void run();

  Parts parts_;
  mutable std::mutex mutex_;
  std::optional<ResolvedService> service_;  // that is being learned
  std::shared_ptr<const FeatureSchema> other_;
  std::unique_ptr<Learner> learner_;
  bool caught_up_ = false;
  std::string failure_;  // of the last change
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace olrank
