#include "olrank/experiment.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <tuple>

#include "arrays.h"
#include "gil.h"
#include "olrank/error.h"
#include "olrank/external_metric.h"
#include "olrank/external_ranker.h"
#include "olrank/external_user.h"

namespace olrank::python {
namespace {

/// A query and its documents, for users and rankers.
struct QueryView {
  std::int64_t number = 0;
  std::string qid;
  std::vector<std::string> ids;
  std::int64_t features = 0;
  std::int64_t person = 0;
  std::vector<float> inputs;
};

/// click() is given everything about a query that a user may know. Most users do not look at the features,
/// which are copied for those that do.
struct UserQuery : QueryView {
  std::vector<std::uint8_t> grades;
  UserCoins coins;
  std::span<const float> uncopied = {};  // during click()
};
struct DuringClick {
  UserQuery& query;
  ~DuringClick() { query.uncopied = {}; }
};

struct RankerQuery : QueryView {};

template <class Query>
QueryView view_of_query(const Query& query) {
  return {query.query,    std::string(query.qid), {query.ids.begin(), query.ids.end()},
          query.features, query.person,           {}};
}

nb::object features_of(const QueryView& query, nb::handle self) {
  const auto columns = static_cast<std::size_t>(query.features);
  return to_view<float>(query.inputs, {columns == 0 ? 0 : query.inputs.size() / columns, columns}, self);
}

template <class Query>
void add_query(nb::class_<Query>& type) {
  type.def_ro("number", &Query::number, "Of the query within its part of the data.")
      .def_ro("qid", &Query::qid, "Its name there.")
      .def_ro("ids", &Query::ids, "Names of the documents; empty where they have none.")
      .def_ro("person", &Query::person, "Who asks, from 0, where the user is several people.");
}

/// A user in Python. The wrapper turns what click() returns into an array.
class PythonUser : public ExternalUser {
 public:
  PythonUser(nb::object click, std::int64_t people) : click_(shared(std::move(click))), people_(people) {}
  std::int64_t people() const override { return people_; }

  std::vector<std::uint8_t> click(const ShownToUser& list) const override {
    const Acquired acquired;
    const nb::object query = nb::cast(
        UserQuery{view_of_query(list), {list.grades.begin(), list.grades.end()}, list.coins, list.inputs});
    const DuringClick during{nb::cast<UserQuery&>(query)};
    const nb::object shown = to_array(std::vector(list.shown.begin(), list.shown.end()));
    nb::object told = (*click_)(query, shown, list.round);
    if (nb::isinstance<nb::tuple>(told)) {
      const auto examined = nb::cast<Values<std::uint8_t>>(told[1]);
      std::copy_n(examined.data(), list.examined.size(), list.examined.begin());  // of as many, as checked
      told = told[0];
    }
    return copy_of(nb::cast<Values<std::uint8_t>>(told));
  }

 private:
  std::shared_ptr<nb::object> click_;
  std::int64_t people_;
};

/// A ranker in Python, behind a wrapper with rank, learn, score, certain_orders, save and load.
class PythonRanker : public ExternalRanker {
 public:
  explicit PythonRanker(nb::object wrapper)
      : scores_queries_(nb::cast<bool>(wrapper.attr("scores_queries"))),
        knows_orders_(nb::cast<bool>(wrapper.attr("knows_orders"))),
        wrapper_(shared(std::move(wrapper))) {}

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
    const nb::object all = nb::cast(RankerQuery{{0, {}, {}, features, 0, {inputs.begin(), inputs.end()}}});
    take_scores(wrapper_->attr("score")(all.attr("X"), nb::none()), scores);
  }

  bool score_query(const ExternalQuery& query, std::span<float> scores) const override {
    if (!scores_queries_) return false;
    const Acquired acquired;
    const nb::object asked = query_of(query);
    take_scores(wrapper_->attr("score")(asked.attr("X"), asked), scores);
    return true;
  }

  std::optional<std::vector<ExternalOrder>> certain_orders(const ExternalQuery& query) override {
    if (!knows_orders_) return std::nullopt;
    const Acquired acquired;
    const auto pairs =
        nb::cast<Values<std::int32_t>>(wrapper_->attr("certain_orders")(query_of(query), query.round));
    std::vector<ExternalOrder> orders;
    for (std::size_t at = 0; at < pairs.size(); at += 2) orders.push_back({pairs(at), pairs(at + 1)});
    return orders;
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
  /// The latest one is kept: rank(), certain_orders() and learn() of a round are about one query.
  nb::object query_of(const ExternalQuery& query) const {
    if (latest_ == nullptr || latest_inputs_ != query.inputs.data() || latest_person_ != query.person) {
      RankerQuery view{view_of_query(query)};
      view.inputs.assign(query.inputs.begin(), query.inputs.end());
      latest_ = shared(nb::cast(std::move(view)));
      latest_inputs_ = query.inputs.data();
      latest_person_ = query.person;
    }
    return *latest_;
  }
  static void take_scores(const nb::object& given, std::span<float> scores) {
    const auto values = nb::cast<Values<float>>(given);
    std::copy_n(values.data(), scores.size(), scores.begin());  // the wrapper has checked their number
  }

  bool scores_queries_;
  bool knows_orders_;
  std::shared_ptr<nb::object> wrapper_;
  mutable std::shared_ptr<nb::object> latest_;
  mutable const float* latest_inputs_ = nullptr;
  mutable std::int64_t latest_person_ = 0;
};

void add_user(const std::string& name, const std::string& description, nb::object click,
              std::int64_t people) {
  register_user(name, description, std::make_shared<PythonUser>(std::move(click), people));
}

void add_ranker(const std::string& name, const std::string& description, nb::object make) {
  register_ranker(
      name, description, [make = shared(std::move(make))](const ExternalRankerRequest& request) {
        const Acquired acquired;
        return std::make_unique<PythonRanker>(
            (*make)(request.features, request.cutoff, request.seed, request.fold, request.parameters));
      });
}

void add_metric(const std::string& name, const std::string& description, nb::object mean) {
  register_metric(name, description, [mean = shared(std::move(mean))](const ScoredPart& part) {
    const Acquired acquired;
    const auto array = [](const auto& values) {
      return to_array(std::vector(values.begin(), values.end()));
    };
    return nb::cast<double>((*mean)(array(part.grades), array(part.scores), array(part.offsets)));
  });
}

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
  nb::class_<UserQuery> of_user(module, "UserQuery",
                                "What a simulated user knows about the query of a round.");
  add_query(of_user);
  of_user
      .def_prop_ro("grades", view_of(&UserQuery::grades), "The true grades of all documents of the query.")
      .def_prop_ro(
          "X",
          [](nb::handle self) {
            auto& query = nb::cast<UserQuery&>(self);
            if (query.inputs.empty()) query.inputs.assign(query.uncopied.begin(), query.uncopied.end());
            if (query.inputs.empty())
              throw InvalidArgument(
                  "query.X of a user is first read during click(), and there is none of sparse documents.");
            return features_of(query, self);
          },
          "Features of the documents [V × d], normalised.")
      .def("uniform", [](const UserQuery& self, std::int32_t doc,
                         UserDecision decision) { return self.coins.uniform(doc, decision); })
      .def("own", [](const UserQuery& self, std::int32_t doc, std::uint32_t number) {
        return self.coins.own(doc, number);
      });
  nb::class_<RankerQuery> of_ranker(module, "RankerQuery",
                                    "What a ranker knows about the query of a round.");
  add_query(of_ranker);
  of_ranker.def_prop_ro(
      "X", [](nb::handle self) { return features_of(nb::cast<const RankerQuery&>(self), self); },
      "Features of the documents [V × d], normalised.");
  module.def("register_user", &add_user);
  module.def("unregister_user", &unregister_user);
  module.def("register_ranker", &add_ranker);
  module.def("unregister_ranker", &unregister_ranker);
  module.def("register_metric", &add_metric);
  module.def("unregister_metric", &unregister_metric);
  module.def("play",
             [](std::string configuration, std::string origin, std::string out, const std::string& earlier,
                std::string command, const nb::object& tell, std::string shard, bool plays) {
               ExperimentOptions options{
                   std::move(configuration), std::move(origin), std::move(out), earlier_of(earlier),
                   std::move(command),       std::move(shard),  plays};
               PlayedExperiment played = play_in_background<PlayedExperiment>(
                   options, tell, [&options] { return play_experiment(options); });
               return std::tuple(played.out.string(), std::move(played.trials), std::move(played.failures),
                                 played.signal);
             });
  module.def(
      "tune", [](std::string configuration, std::string origin, std::string out, const std::string& earlier,
                 const nb::object& tell, std::string by, const std::string& step) {
        TuningOptions options{{std::move(configuration), std::move(origin), std::move(out),
                               earlier_of(earlier), "olrank.tune(…)"},
                              std::move(by),
                              step_of(step)};
        PlayedTuning played = play_in_background<PlayedTuning>(options.experiment, tell,
                                                               [&options] { return play_tuning(options); });
        return std::tuple(played.out.string(), std::move(played.winners), played.complete, played.signal);
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
