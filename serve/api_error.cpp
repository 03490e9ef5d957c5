#include "serve/api_error.h"

#include <fmt/format.h>

#include "core/io/json.h"

namespace olrank {

std::string ApiError::json() const {
  return fmt::format("{{\"error\":{{\"status\":{},\"field\":{}{},\"message\":{}}}}}\n", status_,
                     json_string(field_), code_.empty() ? "" : ",\"code\":" + json_string(code_),
                     json_string(what()));
}

}  // namespace olrank
