#include "bench/measurement.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "core/ops/blas.h"
#include "core/runtime/execution_context.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr double kRepeatSeconds = 2e-3;
constexpr double kAllSeconds = 0.25;
constexpr std::int64_t kFewest = 7;
constexpr std::int64_t kMost = 41;
constexpr int kTurns = 3;
constexpr double kHighestShare = 1.05;
/// The ceiling leaves out what the loops take to start where traffic takes less than this.
constexpr double kShortSeconds = 2e-6;
/// Shorter calls depend as much on where the heap put their buffers as on memory: no limit holds for them.
constexpr double kShortestLimited = 2e-7;
/// A core's own caches hold this. There, instructions and the places of pages decide how fast bytes move.
constexpr double kCachedBytes = 2.0 * 1024.0 * 1024.0;
constexpr double kStartBytes = 256.0;  // of each kind of access, enough to start every loop
// Which pair is fastest depends on the processor and its cache sizes.
constexpr std::array kTriedStreams = {ReadStreams::kFew, ReadStreams::kMany, ReadStreams::kNarrow};
constexpr std::array kTriedStores = {Stores::kLibrary, Stores::kPlain};

/// A square product.
template <class Number>
std::function<void()> product(std::int64_t side) {
  const auto size = static_cast<std::size_t>(side * side);
  return [side, a = std::vector<Number>(size, Number{0.5}), c = std::vector<Number>(size)]() mutable {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, side, side, side, Number{1}, a.data(), side,
               a.data(), side, Number{0}, c.data(), side);
  };
}

struct Yardstick {
  std::string name;
  double work = 0.0;  // operations or bytes of one call
  std::function<void()> body;
  // Much less of the same work, whose time is that of starting; none where that is too short to count.
  double start_work = 0.0;
  std::function<void()> start_body = {};
};

double seconds_of(const std::function<void()>& body, std::int64_t calls) {
  const double start = processor_seconds();
  for (std::int64_t call = 0; call < calls; ++call) body();
  return (processor_seconds() - start) / static_cast<double>(calls);
}

/// Enough calls to make a repeat long compared with the clock's resolution; also warms up.
std::int64_t calls_per_repeat(const std::function<void()>& body) {
  body();
  std::int64_t calls = 1;
  while (seconds_of(body, calls) * static_cast<double>(calls) < kRepeatSeconds && calls < (1 << 20))
    calls *= 2;
  return calls;
}

/// Work per second.
double rate_of(const Yardstick& yardstick, std::int64_t calls) {
  const double seconds = seconds_of(yardstick.body, calls);
  if (!yardstick.start_body) return yardstick.work / seconds;
  const double starting = std::min(seconds_of(yardstick.start_body, calls), 0.5 * seconds);
  return (yardstick.work - yardstick.start_work) / (seconds - starting);
}

Yardstick traffic_yardstick(const MemoryTraffic& traffic, ReadStreams streams, Stores stores) {
  Yardstick made{"memory", traffic.bytes(), bare_traffic(traffic, streams, stores)};
  const std::int64_t calls = calls_per_repeat(made.body);
  if (seconds_of(made.body, calls) > kShortSeconds) return made;
  // Traffic of the same kinds that is next to nothing.
  const MemoryTraffic start{std::min(traffic.read, kStartBytes), std::min(traffic.updated, kStartBytes),
                            std::min(traffic.written, kStartBytes)};
  made.start_work = start.bytes();
  made.start_body = bare_traffic(start, streams, stores);
  return made;
}

/// The yardstick with the highest rate on this machine.
Yardstick best_of(std::vector<Yardstick> tried) {
  std::size_t best = 0;
  double best_rate = 0.0;
  std::vector<std::int64_t> calls;
  calls.reserve(tried.size());
  for (const Yardstick& one : tried) calls.push_back(calls_per_repeat(one.body));
  // Interleaved, so that a burst of load does not hit one yardstick only.
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < tried.size(); ++i) {
      const double rate = rate_of(tried[i], calls[i]);
      if (rate <= best_rate) continue;
      best_rate = rate;
      best = i;
    }
  }
  return std::move(tried[best]);
}

/// Square products of several sizes; small ones, which stay in cache, may win. The machine decides, once.
template <class Number>
Yardstick product_yardstick(const std::string& name) {
  static const Yardstick best = [&name] {
    std::vector<Yardstick> tried;
    for (const std::int64_t side : {96, 120, 192, 700})
      tried.push_back({name, 2.0 * real(side * side * side), product<Number>(side)});
    return best_of(std::move(tried));
  }();
  return best;
}

Yardstick yardstick(const BenchCase& work) {
  switch (work.ceiling) {
    case CeilingKind::kGemmFloat:
      return product_yardstick<float>("gemm float");
    case CeilingKind::kGemmDouble:
      return product_yardstick<double>("gemm double");
    case CeilingKind::kMemory: {
      std::vector<Yardstick> tried;
      for (const ReadStreams streams : kTriedStreams)
        for (const Stores stores : kTriedStores)
          tried.push_back(traffic_yardstick(work.traffic, streams, stores));
      return best_of(std::move(tried));
    }
    case CeilingKind::kOwn:
      return {work.own_name, work.traffic.bytes(), work.own_body};
    case CeilingKind::kNone:
      break;
  }
  return {};
}

/// Whether nothing can be faster than the ceiling.
bool is_limited(const BenchCase& work) {
  if (work.ceiling == CeilingKind::kMemory) return work.traffic.footprint() > kCachedBytes;
  return work.ceiling != CeilingKind::kOwn;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Spread spread_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  const auto [low, high] = std::minmax_element(seconds.begin(), seconds.end());
  return {median_of(seconds), *low, *high, std::ssize(seconds)};
}

std::string Measurement::identity() const {
  std::string text = fmt::format("{} on {}", name, device);
  for (const auto& [key, value] : parameters) text += fmt::format(", {} = {}", key, value);
  return text;
}

void check_memory(const BenchCase& work) {
  const double copies =
      work.ceiling == CeilingKind::kMemory ? 1.0 + kTriedStreams.size() * kTriedStores.size() : 1.0;
  const double needed = copies * work.traffic.footprint();
  const auto available = static_cast<double>(available_memory());
  if (needed <= available) return;
  std::string sizes;
  for (const auto& [key, value] : work.parameters)
    sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", key, value);
  throw_error<InvalidArgument>(
      "{} with {} needs {} of memory, but this machine has {} available: choose smaller sizes.", work.name,
      sizes, readable_bytes(needed), readable_bytes(available));
}

Measurement measure(const BenchCase& work) {
  const std::function<void()> body = work.prepare();
  const Yardstick ceiling = yardstick(work);
  const std::int64_t calls = calls_per_repeat(body);
  const std::int64_t ceiling_calls = ceiling.body ? calls_per_repeat(ceiling.body) : 0;
  std::vector<double> seconds;
  std::vector<double> rates;
  std::vector<double> shares;
  double spent = 0.0;
  const bool counts_bytes = work.ceiling == CeilingKind::kMemory || work.ceiling == CeilingKind::kOwn;
  const double counted = counts_bytes ? work.traffic.bytes() : work.operations;
  for (std::int64_t repeat = 0; repeat < kFewest || (spent < kAllSeconds && repeat < kMost); ++repeat) {
    seconds.push_back(seconds_of(body, calls));
    spent += seconds.back() * static_cast<double>(calls);
    if (!ceiling.body) continue;
    rates.push_back(rate_of(ceiling, ceiling_calls));
    shares.push_back(counted / seconds.back() / rates.back());
  }
  Measurement measurement;
  measurement.name = work.name;
  measurement.parameters = work.parameters;
  measurement.seconds = spread_of(std::move(seconds));
  measurement.operations = work.operations;
  measurement.bytes = work.traffic.bytes();
  measurement.ceiling = ceiling.name;
  measurement.ceiling_value = rates.empty() ? std::nan("") : median_of(rates);
  measurement.is_limit = is_limited(work);
  measurement.share = shares.empty() ? std::nan("") : median_of(shares);
  measurement.least_share = shares.empty() ? std::nan("") : *std::min_element(shares.begin(), shares.end());
  return measurement;
}

void check_share(const Measurement& measurement) {
  if (!measurement.is_limit || !(measurement.least_share > kHighestShare)) return;
  if (measurement.seconds.median < kShortestLimited) return;
  throw_error<Error>(
      "{}: The measurement is at least {:.2f} times its ceiling ({}), so bytes or operations are "
      "miscounted.",
      measurement.identity(), measurement.least_share, measurement.ceiling);
}

}  // namespace olrank
