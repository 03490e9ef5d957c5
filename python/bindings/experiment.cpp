#include "olrank/experiment.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <csignal>
#include <exception>
#include <functional>
#include <mutex>
#include <tuple>

#include "arrays.h"
#include "background.h"
#include "gil.h"
#include "olrank/error.h"
#include "olrank/external_ranker.h"
#include "olrank/external_user.h"
#include "parts.h"

namespace olrank::python {
namespace {

/// An object of Python's that any thread may let go of.
std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            const Acquired acquired;
            delete held;
          }};
}

/// click() is given everything about a query that a user may know.
struct UserQuery {
  std::vector<std::uint8_t> grades;
  UserCoins coins;
};

/// rank() and learn() are given a query.
struct RankerQuery {
  std::int64_t number = 0;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  std::vector<float> inputs;
};

/// A user in Python. The wrapper turns what click() returns into an array.
class PythonUser : public ExternalUser {
 public:
  explicit PythonUser(nb::object click) : click_(shared(std::move(click))) {}

  std::vector<std::uint8_t> click(const ShownToUser& list) const override {
    const Acquired acquired;
    const nb::object query = nb::cast(UserQuery{{list.grades.begin(), list.grades.end()}, list.coins});
    const nb::object shown = to_array(std::vector(list.shown.begin(), list.shown.end()));
    const auto clicks = nb::cast<Values<std::uint8_t>>((*click_)(query, shown, list.round));
    return copy_of(clicks);
  }

 private:
  std::shared_ptr<nb::object> click_;
};

/// A ranker in Python, behind a wrapper with rank, learn, score, save and load.
class PythonRanker : public ExternalRanker {
 public:
  explicit PythonRanker(nb::object wrapper) : wrapper_(shared(std::move(wrapper))) {}

  std::vector<std::int32_t> rank(const ExternalQuery& query) override {
    const Acquired acquired;
    const auto order = nb::cast<Values<std::int32_t>>(wrapper_->attr("rank")(query_of(query), query.round));
    return copy_of(order);
  }

  void learn(const ExternalQuery& query, std::span<const std::int32_t> shown,
             std::span<const std::uint8_t> clicks) override {
    const Acquired acquired;
    wrapper_->attr("learn")(query_of(query), to_array(std::vector(shown.begin(), shown.end())),
                            to_array(std::vector(clicks.begin(), clicks.end())), query.round);
  }

  void score(std::span<const float> inputs, std::int64_t docs, std::int64_t features,
             std::span<float> scores) const override {
    const Acquired acquired;
    const nb::object documents =
        to_array(std::vector(inputs.begin(), inputs.end()),
                 {static_cast<std::size_t>(docs), static_cast<std::size_t>(features)});
    const auto given = nb::cast<Values<float>>(wrapper_->attr("score")(documents));
    const auto values = span_of(given);
    std::copy(values.begin(), values.end(), scores.begin());  // the wrapper has checked their number
  }

  std::string save() const override {
    const Acquired acquired;
    const auto state = nb::cast<nb::bytes>(wrapper_->attr("save")());
    return {state.c_str(), state.size()};
  }

  void load(std::string_view state) override {
    const Acquired acquired;
    wrapper_->attr("load")(nb::bytes(state.data(), state.size()));
  }

 private:
  static nb::object query_of(const ExternalQuery& query) {
    return nb::cast(
        RankerQuery{query.query, query.docs, query.features, {query.inputs.begin(), query.inputs.end()}});
  }

  std::shared_ptr<nb::object> wrapper_;
};

void add_user(const std::string& name, const std::string& description, nb::object click) {
  register_user(name, description, std::make_shared<PythonUser>(std::move(click)));
}

void add_ranker(const std::string& name, const std::string& description, nb::object make) {
  register_ranker(name, description,
                  [make = shared(std::move(make))](const ExternalRankerRequest& request) {
                    const Acquired acquired;
                    return std::make_unique<PythonRanker>(
                        (*make)(request.features, request.cutoff, request.seed, request.fold));
                  });
}

/// The events of an experiment until somebody takes them.
class Events {
 public:
  void add(std::string_view event) {
    const std::lock_guard lock(mutex_);
    events_.emplace_back(event);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> events_;
};

using Handler = void (*)(int);
Handler interrupt_handler() {
  struct sigaction action {};
  sigaction(SIGINT, nullptr, &action);
  return action.sa_handler;
}

/// While an experiment plays its trials, it takes signals itself; before and after, Python does. A signal
/// that Python has got is passed on as soon as the experiment can take it.
class InterruptRelay {
 public:
  void look() {
    if (!pending_ && PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      pending_ = true;
    }
    // A second signal would end the process. The experiment is stopping already, and Python has to go on
    // after it.
    if (interrupt_handler() == SIG_DFL && python_ != SIG_DFL) std::signal(SIGINT, SIG_IGN);
    if (!pending_ || passed_on_ || interrupt_handler() == python_) return;
    std::raise(SIGINT);
    passed_on_ = true;
  }
  void stop() { pending_ = true; }
  bool pending() const { return pending_; }

 private:
  Handler python_ = interrupt_handler();
  bool pending_ = false;
  bool passed_on_ = false;
};

/// Plays on a thread of its own, whose events go to tell(), and passes Python's signals on.
template <class Played>
Played play_in_background(ExperimentOptions& options, const nb::object& tell,
                          const std::function<Played()>& play) {
  Events events;
  options.on_event = [&events](std::string_view event) { events.add(event); };
  Background<Played> experiment(play);
  InterruptRelay interrupts;
  std::exception_ptr failure;  // of tell(): the experiment stops with checkpoints
  for (bool ended = false; !ended;) {
    ended = experiment.wait();
    try {
      for (const std::string& event : events.take()) {
        if (!failure) tell(event);
      }
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_KeyboardInterrupt)) failure = std::current_exception();
      interrupts.stop();
    }
    interrupts.look();
  }
  Played played = experiment.result();
  if (failure) std::rethrow_exception(failure);
  if (interrupts.pending() && played.signal == 0) played.signal = SIGINT;
  return played;
}

std::tuple<std::string, std::vector<std::string>, std::vector<std::string>, int> play(
    ExperimentOptions options, const nb::object& tell) {
  PlayedExperiment played =
      play_in_background<PlayedExperiment>(options, tell, [&options] { return play_experiment(options); });
  return {played.out.string(), std::move(played.trials), std::move(played.failures), played.signal};
}

std::tuple<std::string, std::string, bool, int> tune(TuningOptions options, const nb::object& tell) {
  PlayedTuning played = play_in_background<PlayedTuning>(options.experiment, tell,
                                                         [&options] { return play_tuning(options); });
  return {played.out.string(), std::move(played.winners), played.complete, played.signal};
}

TuningOptions::Step step_of(const std::string& name) {
  if (name == "grid") return TuningOptions::Step::kMakeGrid;
  if (name == "choose") return TuningOptions::Step::kChoose;
  return TuningOptions::Step::kWhole;
}

EarlierResults earlier_of(const std::string& name) {
  if (name == "resume") return EarlierResults::kResume;
  if (name == "replace") return EarlierResults::kReplace;
  return EarlierResults::kRefuse;
}

}  // namespace

void add_experiments(nb::module_& module) {
  nb::enum_<UserDecision>(module, "UserDecision")
      .value("click", UserDecision::kClick)
      .value("stop", UserDecision::kStop)
      .value("noise", UserDecision::kNoise)
      .value("examination", UserDecision::kExamination)
      .value("perseverance", UserDecision::kPerseverance);
  nb::class_<UserQuery>(module, "UserQuery", "What a simulated user knows about the query of a round.")
      .def_prop_ro("grades", view_of(&UserQuery::grades), "The true grades of all documents of the query.")
      .def(
          "uniform",
          [](const UserQuery& self, std::int32_t doc, UserDecision decision) {
            return self.coins.uniform(doc, decision);
          },
          nb::arg("doc"), nb::arg("decision"))
      .def(
          "own",
          [](const UserQuery& self, std::int32_t doc, std::uint32_t number) {
            return self.coins.own(doc, number);
          },
          nb::arg("doc"), nb::arg("number"));
  nb::class_<RankerQuery>(module, "RankerQuery", "What a ranker knows about the query of a round.")
      .def_ro("number", &RankerQuery::number, "Of the query within its part of the data.")
      .def_prop_ro(
          "X",
          [](nb::handle self) {
            const auto& query = nb::cast<const RankerQuery&>(self);
            return to_view<float>(
                query.inputs,
                {static_cast<std::size_t>(query.docs), static_cast<std::size_t>(query.features)}, self);
          },
          "Features of the documents [V × d], normalised.");
  module.def("register_user", &add_user);
  module.def("unregister_user", &unregister_user);
  module.def("register_ranker", &add_ranker);
  module.def("unregister_ranker", &unregister_ranker);
  module.def("play",
             [](std::string configuration, std::string origin, std::string out, const std::string& earlier,
                std::string command, const nb::object& tell, std::string shard, bool plays) {
               ExperimentOptions options;
               options.configuration = std::move(configuration);
               options.origin = std::move(origin);
               options.out = std::move(out);
               options.earlier = earlier_of(earlier);
               options.command = std::move(command);
               options.shard = std::move(shard);
               options.plays = plays;
               return play(std::move(options), tell);
             });
  module.def("tune",
             [](std::string configuration, std::string origin, std::string out, const std::string& earlier,
                const nb::object& tell, std::string by, std::string per, const std::string& step) {
               TuningOptions options;
               options.experiment.configuration = std::move(configuration);
               options.experiment.origin = std::move(origin);
               options.experiment.out = std::move(out);
               options.experiment.earlier = earlier_of(earlier);
               options.experiment.command = "olrank.tune(…)";
               options.by = std::move(by);
               options.per = std::move(per);
               options.step = step_of(step);
               return tune(std::move(options), tell);
             });
  module.def("external_state",
             [](const std::string& trial) { return to_bytes(external_ranker_state(trial)); });
  module.def("report", [](const std::vector<std::string>& folders, const std::string& form,
                          const std::string& baseline, const std::vector<std::vector<std::string>>& users) {
    return unlocked([&] {
      return experiment_report({folders.begin(), folders.end()}, form, baseline, users);
    });
  });
  module.def("figures", [](const std::string& out, bool dark) {
    std::vector<std::tuple<std::string, std::string, std::string>> shown;
    for (const ExperimentFigure& figure : unlocked([&] { return experiment_figures(out, dark); }))
      shown.emplace_back(figure.name, figure.caption, figure.svg);
    return shown;
  });
}

}  // namespace olrank::python
