#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "serve/event_window.h"
#include "serve/learner.h"
#include "serve/listener.h"
#include "serve/open_lists.h"
#include "serve/redis_client.h"
#include "serve/service.h"
#include "serve/service_setup.h"

namespace olrank {

/// The part of a process in a shared log.
enum class ServiceRole { kBoth, kLearner, kReplica };

template <>
struct EnumNames<ServiceRole> {
  static constexpr std::array values = names_in_order<ServiceRole>("both", "learner", "replica");
};

/// The log that several processes share.
struct SharedLogOptions {
  RedisSettings server;
  ServiceRole role = ServiceRole::kBoth;
  bool assume_durable = false;
  std::int64_t replicas = 0;  // of the server, that must have a record before it is acknowledged
  std::uint64_t keep = 1000;  // archived records that stay in the stream
};

/// The options tell what `olrank serve` was asked to do.
struct ServiceOptions {
  std::string state;    // folder; empty for a process without a learner
  std::string surface;  // its name in the process; empty: it has the paths as they are
  ServiceRequest request;
  ImportSource import;
  ArmRequest arms;
  ImpressionLimits impressions;
  std::int64_t window_seconds = 0;
  EventTypes events;
  bool log_unshown = false;
  std::size_t document_bytes = 1'000'000'000;  // memory of stored documents
  FileLog::Segments segments{};                // of the log
  std::int64_t most_docs = 1000;
  std::uint64_t checkpoint_every = 1000;
  std::int64_t drain_seconds = 30;
  bool accept_loss = false;
  std::optional<std::uint64_t> to_round;
  HttpSettings http;
  std::optional<SharedLogOptions> shared;
  std::string follow;              // URL of the service whose model is ranked with; empty: none
  std::string follow_token;        // that it wants
  std::string follow_ca;           // certificates that may sign its own; empty: the system's
  std::int64_t wait_seconds = 60;  // at the start, for the server of the log, and for settings or service
  ServicePage page;
  bool warns_of_first_lists = true;  // which are in random order
};

/// Runs the service until SIGINT or SIGTERM, then answers open requests, learns accepted feedback and
/// writes a checkpoint. Prints its URL once it listens. Throws StateLost once it must not go on.
void run_service(const ServiceOptions& options);

/// Runs several services at the address of the first, each as the surface of its options. Each has a state
/// folder of its own, and none a shared log.
void run_services(std::span<const ServiceOptions> options);

/// Learns the log without serving, writes a checkpoint, and returns the state.
RankerSource::State learn_only(const ServiceOptions& options);

}  // namespace olrank
