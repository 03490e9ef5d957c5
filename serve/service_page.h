#pragma once

#include <string>
#include <string_view>

#include "serve/status_page.h"

namespace olrank {

/// What a browser gets at `/`.
struct ServicePage {
  std::string html = status_page();
  std::string_view policy = kStatusPagePolicy;  // Content-Security-Policy
};

}  // namespace olrank
