#include "serve/api_error.h"

#include <fmt/format.h>

#include "core/io/json.h"

namespace olrank {

std::string ApiError::json() const {
  std::string json = fmt::format("{{\"error\":{{\"status\":{},\"field\":", status_);
  append_json_string(json, field_);
  if (!code_.empty()) {
    json += ",\"code\":";
    append_json_string(json, code_);
  }
  json += ",\"message\":";
  append_json_string(json, what());
  return json + "}}\n";
}

}  // namespace olrank
