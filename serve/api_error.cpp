#include "serve/api_error.h"

#include <fmt/format.h>

#include "serve/feedback_record.h"

namespace olrank {

std::string ApiError::json() const {
  std::string json = fmt::format("{{\"error\":{{\"status\":{},\"field\":", status_);
  append_json_text(json, field_);
  json += ",\"message\":";
  append_json_text(json, what());
  return json + "}}\n";
}

}  // namespace olrank
