#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "serve/demo_catalogue.h"
#include "serve/demo_page.h"
#include "serve/service_process.h"

namespace olrank {
namespace {

class DemoCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "file", file_, "FILE",
               "LETOR file whose queries are shown [default: generated products]");
    add_option(app, "--port", port_, "N", "port of 127.0.0.1; 0 picks a free one [default: 8090]");
    add_option(app, "--state", state_, "DIR",
               "folder that keeps what was learned [default: a temporary one, removed at the end]");
    add_option(app, "--seed", seed_, "N",
               "random seed of products, simulated people and rankers [default: 1]");
  }

  int run(const OutputFlags& output) override {
    if (port_ < 0 || port_ > 65535)
      throw_error<InvalidArgument>("--port must be from 0 to 65535, not {}.", port_);
    if (seed_ < 0) throw_error<InvalidArgument>("--seed must be at least 0, not {}.", seed_);
    const auto seed = static_cast<std::uint64_t>(seed_);
    const DemoCatalogue catalogue = file_.empty() ? product_catalogue(seed) : letor_catalogue(file_);
    std::optional<ScratchFolder> scratch;
    const std::filesystem::path folder =
        state_.empty() ? scratch.emplace().path() : std::filesystem::path(state_);
    // Two rankers for each simulated person and for the person who looks at the page, for every start.
    std::vector<ServiceOptions> services(2 * (catalogue.tastes + 1) * kDemoStarts);
    for (std::size_t number = 0; number < services.size(); ++number) {
      ServiceOptions& one = services[number];
      one.state = (folder / fmt::format("ranker{}", number)).string();
      if (number > 0) one.surface = fmt::format("{}", number);
      one.request.features = catalogue.features;
      one.request.seed = seed_;
      one.http.port = port_;
      one.warns_of_first_lists = false;
    }
    services.front().page = demo_page(catalogue, seed);
    if (!output.verbose) set_verbosity(Verbosity::kQuiet);
    run_services(services);
    return 0;
  }

 private:
  std::string file_;
  int port_ = 8090;
  std::string state_;
  std::int64_t seed_ = 1;
};

}  // namespace

const CommandEntry kDemoCommand{"demo", "serve a page on which one clicks and sees a ranker learn",
                                make_command<DemoCommand>};

}  // namespace olrank
