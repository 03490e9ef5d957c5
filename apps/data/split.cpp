#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "apps/data/data_files.h"
#include "core/data/join.h"
#include "core/io/folder.h"
#include "core/random/rng_stream.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

class SplitCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "in", in_, "IN", "LETOR text or binary file; - is standard input")->required();
    add_output(app, "--out", out_, "DIR", "output folder")->required();
    parts_flag_ = add_option(app, "--parts", parts_, "N",
                             "number of equal parts S1, S2, …; five parts make five folds [default: 5]");
    for (CLI::Option* share : {app.add_option("--train", train_, "fraction of queries in the training set"),
                               app.add_option("--vali", vali_, "fraction of queries in the validation set"),
                               app.add_option("--test", test_, "fraction of queries in the test set")}) {
      share->type_name("SHARE")->excludes(parts_flag_);
      shares_.push_back(share);
    }
    add_option(app, "--seed", seed_, "N", "random seed [default: 1]");
    app.add_option("--ending", ending_, "file format [default: .txt]")
        ->check(CLI::IsMember({".txt", ".txt.gz", ".txt.zst", ".olrank"}));
    flags_.declare(app);
  }

  int run(const OutputFlags& output) override {
    const std::vector<Part> parts = plan();
    for (const Part& part : parts) {
      if (std::filesystem::exists(path_of(part))) {
        throw_error<InvalidArgument>("'{}' already exists; choose another folder or remove it.",
                                     path_of(part));
      }
    }
    ExecutionContext context(flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    const std::vector<std::vector<std::int64_t>> queries = deal(parts, data.queries());
    make_folder(out_);
    ordered_json summaries = ordered_json::array();
    std::string text;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const Dataset chosen = select_queries(data, queries[part], context);
      write_any(chosen, path_of(parts[part]), {});
      summaries.push_back(summary_of(path_of(parts[part]), chosen));
      text += summary_text(summaries.back());
    }
    output.print(summaries, text);
    return 0;
  }

 private:
  struct Part {
    std::string name;
    double share;
  };

  std::string path_of(const Part& part) const {
    return (std::filesystem::path(out_) / (part.name + ending_)).string();
  }

  std::vector<Part> plan() const {
    const bool by_share = std::any_of(shares_.begin(), shares_.end(),
                                      [](const CLI::Option* option) { return option->count() > 0; });
    if (!by_share) {
      if (parts_ < 2) throw_error<InvalidArgument>("--parts must be at least 2, not {}.", parts_);
      std::vector<Part> parts;
      for (int part = 1; part <= parts_; ++part) parts.push_back({fmt::format("S{}", part), 1.0 / parts_});
      return parts;
    }
    if (!(train_ > 0.0 && vali_ >= 0.0 && test_ > 0.0 && std::abs(train_ + vali_ + test_ - 1.0) < 1e-9)) {
      throw_error<InvalidArgument>(
          "--train, --vali and --test must add up to 1, with --train and --test above 0, not {}, {} and "
          "{}.",
          train_, vali_, test_);
    }
    std::vector<Part> parts = {{"train", train_}};
    if (vali_ > 0.0) parts.push_back({"vali", vali_});
    parts.push_back({"test", test_});
    return parts;
  }

  /// The queries of each part, drawn at random and kept in file order.
  std::vector<std::vector<std::int64_t>> deal(const std::vector<Part>& parts, std::int64_t count) const {
    if (count < std::ssize(parts)) {
      throw DataError(in_, 0, 0,
                      fmt::format("{} queries cannot be split into {} parts.", count, parts.size()));
    }
    std::vector<std::int64_t> deck(count);
    for (std::size_t i = 0; i < deck.size(); ++i) deck[i] = static_cast<std::int64_t>(i);
    RngStream rng(make_key({.seed = seed_, .purpose = Purpose::kSplit}), 0);
    rng.shuffle(std::span(deck));
    std::vector<std::vector<std::int64_t>> queries;
    double share = 0.0;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      share += parts[part].share;
      // Leaves at least one query for this part and for each later one.
      const std::size_t last_end = deck.size() - (parts.size() - 1 - part);
      const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(count)));
      const std::size_t end =
          part + 1 == parts.size() ? deck.size() : std::clamp(wanted, begin + 1, last_end);
      queries.emplace_back(deck.begin() + static_cast<std::ptrdiff_t>(begin),
                           deck.begin() + static_cast<std::ptrdiff_t>(end));
      std::sort(queries.back().begin(), queries.back().end());
      begin = end;
    }
    return queries;
  }

  std::string in_;
  std::string out_;
  int parts_ = 5;
  double train_ = 0.6;
  double vali_ = 0.2;
  double test_ = 0.2;
  std::uint64_t seed_ = 1;
  std::string ending_ = ".txt";
  CLI::Option* parts_flag_ = nullptr;
  std::vector<CLI::Option*> shares_;
  ReadingFlags flags_;
};

}  // namespace

const CommandEntry kDataSplitCommand{
    "data split", "split by query into S1 to S5, or into train, vali and test", make_command<SplitCommand>};

}  // namespace olrank
