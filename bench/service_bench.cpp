// The cost of one /v1/rank without HTTP, for the ranker of a state directory: parsing the body, and scores,
// widths and list. Usage: service_bench STATE BODY [REPETITIONS]; prints JSON.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "serve/file_log.h"
#include "serve/learner.h"
#include "serve/requests.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"

namespace olrank {
namespace {

double thread_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// CPU time of this thread, which load on the machine affects less than wall-clock time.
template <class Work>
double median_milliseconds(int repetitions, const Work& work) {
  std::vector<double> times;
  for (int time = 0; time < repetitions; ++time) {
    const double begin = thread_milliseconds();
    work();
    times.push_back(thread_milliseconds() - begin);
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

void measure(const std::string& state, const std::string& body_file, int repetitions) {
  const StateFolder folder(state);
  const ResolvedService service = resolve_service(folder, {});
  const ServiceIdentity& identity = service.identity;
  const FittedNormaliser normaliser =
      parse_normaliser(identity.normalisation, folder.identity_file().string());
  FileLog log(folder.log(), 1);
  Learner learner(make_service_ranker(service, available_memory() / 3), log,
                  {folder.checkpoint(), print_identity(identity), 1000});
  learner.learn_all();
  const std::string body = read_file(body_file);
  RequestLimits limits;
  limits.docs = 100'000;
  limits.features = normaliser.features;
  if (!identity.feature_names.empty())
    for (const std::string& name : parse_feature_names(identity.feature_names))
      limits.names.emplace(name, limits.names.size());
  RankRequest request;
  const double parse = median_milliseconds(repetitions, [&] { parse_rank_request(body, limits, request); });
  const auto docs = std::ssize(request.docs);
  std::vector<float> inputs(docs * normaliser.inputs());
  normaliser.apply({request.values.data(), docs, normaliser.features}, inputs.data());
  ExecutionContext context;
  Ranking ranking;
  const auto published = learner.latest();
  const double rank = median_milliseconds(repetitions, [&] {
    published->ranker->rank(context, {{inputs.data(), docs, normaliser.inputs()}, 10, 1, true}, ranking);
  });
  fmt::print(R"({{"rounds":{},"pairs":{},"docs":{},"body_bytes":{},"parse_ms":{:.4f},"rank_ms":{:.4f}}})"
             "\n",
             published->round, published->pairs, docs, body.size(), parse, rank);
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  try {
    if (argc < 3 || argc > 4)
      throw olrank::InvalidArgument("usage: service_bench STATE BODY [REPETITIONS]");
    olrank::measure(argv[1], argv[2], argc > 3 ? std::stoi(argv[3]) : 101);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "service_bench: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
