#include <fmt/format.h>

#include <string>

#include "apps/data/commands.h"
#include "apps/data/data_files.h"

namespace olrank {
namespace {

class ConvertCommand : public Command {
 public:
  std::string name() const override { return "convert"; }
  std::string summary() const override {
    return "convert between text and binary (.olrank), losslessly; text may be plain, .gz or .zst";
  }
  void declare(CLI::App& app) override {
    app.add_option("in", in_, "LETOR text or binary file; - is standard input")
        ->type_name("IN")
        ->required();
    app.add_option("out", out_,
                   "output file: .olrank is binary, .gz and .zst are compressed text, anything else is "
                   "plain text; - is standard output")
        ->type_name("OUT")
        ->required();
    app.add_flag("--sparse", format_.sparse, "omit zeros in text output");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    ExecutionContext context(flags_.threads);
    const Dataset data = read_any(in_, flags_, context);
    write_any(data, out_, format_);
    if (out_ == "-") return 0;
    if (output.json) {
      fmt::print("{}\n", summary_of(out_, data).dump(2));
    } else {
      print_summary(summary_of(out_, data));
    }
    return 0;
  }

 private:
  std::string in_;
  std::string out_;
  LetorFormat format_;
  ReadingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_data_convert_command() {
  return std::make_unique<ConvertCommand>();
}

}  // namespace olrank
