#include "serve/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

constexpr std::string_view kPagePath = "/";

const std::vector<Route>& routes() {
  static constexpr std::string_view kJson = "application/json";
  using Body = const std::string&;
  static const std::vector<Route> all = {
      {"POST", "/v1/rank", Route::kComputing, kJson, Route::kNeedsBody, false,
       [](Service& service, Body body) { return service.rank(body); }},
      {"POST", "/v1/rerank", Route::kComputing, kJson, Route::kNeedsBody, false,
       [](Service& service, Body body) { return service.rerank(body); }},
      {"POST", "/v1/feedback", Route::kWaiting, kJson, Route::kNeedsBody, false,
       [](Service& service, Body body) { return service.feedback(body); }},
      {"POST", "/v1/checkpoint", Route::kWaiting, kJson, Route::kNoBody, false,
       [](Service& service, Body) { return service.checkpoint(); }},
      {"GET", "/v1/overview", Route::kWaiting, kJson, Route::kNoBody, false,
       [](Service& service, Body) { return service.overview(); }},
      {"GET", "/v1/arms", Route::kWaiting, kJson, Route::kNoBody, false,
       [](Service& service, Body) { return service.arms(); }},
      {"GET", "/v1/stats", Route::kWaiting, kJson, Route::kNoBody, false,
       [](Service& service, Body) { return service.stats(); }},
      {"GET", "/v1/model", Route::kComputing, "application/octet-stream", Route::kNoBody, true,
       [](Service& service, Body) { return service.model(); }},
      {"GET", "/v1/snapshot", Route::kWaiting, "application/octet-stream", Route::kNoBody, true,
       [](Service& service, Body) { return service.snapshot(); },
       [](Service& service) { return service.snapshot_tag(); }},
      {"GET", "/metrics", Route::kWaiting, "text/plain; version=0.0.4", Route::kNoBody, false,
       [](Service& service, Body) { return service.metrics(); }},
      {"GET", "/readyz", Route::kWaiting, kJson, Route::kNoBody, false,
       [](Service& service, Body) { return service.ready(); }},
      {"GET", "/healthz", Route::kNothing, kJson, Route::kNoBody, false,
       [](Service&, Body) { return "{\"alive\":true}\n"; }},
      {"GET", kPagePath, Route::kNothing, "text/html; charset=utf-8", Route::kNoBody, false,
       [](Service& service, Body) { return std::string(service.page().html); }},
  };
  return all;
}

/// Each path has one method. None if no route has the path.
const Route* route_of(std::string_view path) {
  const auto found = std::find_if(routes().begin(), routes().end(),
                                  [&](const Route& route) { return route.path == path; });
  return found != routes().end() ? &*found : nullptr;
}

}  // namespace

const Route& find_route(const RequestHead& head) {
  const Route* route = route_of(head.path());
  if (route == nullptr) throw ApiError(404, "", "Unknown path.");
  const std::string_view method = head.method == "HEAD" ? "GET" : std::string_view(head.method);
  if (method == route->method) return *route;
  throw ApiError(405, "", fmt::format("{} takes {}, not {}.", route->path, route->method, head.method))
      .allowing(route->method == "GET" ? "GET, HEAD" : route->method);
}

std::string_view known_path(std::string_view path) {
  const Route* route = route_of(path);
  return route != nullptr ? route->path : "other";
}

Answer answer_request(const Route& route, Service& service, const RequestHead& head,
                      const std::string& body) {
  try {
    Answer answer;
    answer.type = route.type;
    if (route.path == kPagePath) answer.policy = service.page().policy;
    if (route.tag != nullptr) answer.tag = fmt::format("\"{}\"", route.tag(service));
    if (answer.tag.empty() || !has_tag(head, answer.tag)) answer.body = route.answer(service, body);
    if (!route.is_file) return answer;
    if (answer.tag.empty()) answer.tag = fmt::format("\"{}\"", fingerprint_of(answer.body).hex());
    if (has_tag(head, answer.tag)) {
      answer.status = 304;
      answer.body.clear();
    }
    return answer;
  } catch (const ApiError& error) {
    return answer_rejection(error);
  } catch (const std::exception& error) {
    log_warning("{}: {}", route.path, error.what());
    return answer_rejection(ApiError(500, "", error.what()));
  }
}

Answer answer_rejection(const ApiError& error) {
  Answer answer;
  answer.status = error.status();
  answer.allow = error.allow();
  answer.retry_after = error.status() == 503 ? std::max(1, error.retry_after()) : error.retry_after();
  answer.body = error.json();
  return answer;
}

}  // namespace olrank
