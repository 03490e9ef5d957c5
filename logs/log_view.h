#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/feedback/feedback_record.h"
#include "core/text/output_form.h"

namespace olrank {

/// Which records of a log to show; all that are not given are any.
struct LogFilter {
  std::optional<std::uint64_t> from_round;
  std::optional<std::uint64_t> to_round;
  std::optional<std::string> query;
  std::optional<std::string> impression;
  std::optional<bool> clicked;  // whether anything was
  std::optional<std::int64_t> limit;

  bool takes(const FeedbackRecord& record) const;
};

/// Shows records as text, with clicked documents marked by a *, or as their lines without the documents'
/// inputs and the checksum, which covers these.
void show_log(const std::filesystem::path& log, const LogFilter& filter, const OutputForm& form,
              const TextSink& out);

/// Says what a log holds: {"log", "records", "time", "queries", "documents", …}; null where none has it.
nlohmann::ordered_json log_statistics(const std::filesystem::path& log);
std::string log_statistics_text(const nlohmann::ordered_json& statistics, std::int64_t columns);

}  // namespace olrank
