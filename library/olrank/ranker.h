#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// olrank as a library: an online ranker that learns from clicks and knows which orders it is sure of. This
/// header needs the C++20 standard library and nothing else. Errors are the classes of <olrank/error.h>.
namespace olrank {

struct RankerOptions {
  /// clickgp, pairrank, olranknet, ollambdarank, p2linrank, p2neurrank, ranknet, pdgd, dbgd or mgd.
  std::string kind = "clickgp";
  std::int64_t features = 0;               // d, of a document; required
  std::int64_t cutoff = 10;                // k, ranks that users see
  std::uint64_t seed = 1;                  // same seed, same lists, on any number of threads
  std::string protocol = "recommended";    // whose defaults hold: recommended, paper or reference
  std::string normalise = "query-minmax";  // how raw features become inputs: query-minmax or none
  std::uint64_t fold = 0;                  // with `user`, whose draws these are: those of a trial of this
  std::string user = {};                   // fold and user in an experiment with the same seed
  int threads = 1;
  /// Where it computes: cpu, cuda or one of several GPUs, such as cuda:1. On a GPU it has bits of its own,
  /// and documents go there with each call.
  std::string device = "cpu";
  /// Other settings by their keys in the [[ranker]] table of a configuration file, such as
  /// {"covariance", "diagonal"}; docs/CONFIGURATION.md lists them.
  std::map<std::string, std::string> settings = {};
};

/// Documents in the memory of a GPU, row by row, as other libraries have them there. They are read during
/// the call, in the stream Ranker::gpu_stream(), and never changed.
struct GpuDocs {
  int gpu = 0;  // as CUDA numbers the visible ones; first, so that {pointer, size} is no GpuDocs
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  std::int64_t stride = 0;  // values from one row to the next; 0: as many as features
};

/// `first` is certainly more relevant than `second`; both are documents of one query.
struct CertainPair {
  std::int32_t first = 0;
  std::int32_t second = 0;
};

/// A list to show. It remembers its query, so that learn() needs it and the clicks alone.
struct ShownList {
  std::vector<std::int32_t> docs;    // rows of the matrix, best first; at most `cutoff`
  std::vector<float> scores;         // f(x) of every document of the query, by row
  std::vector<CertainPair> certain;  // among the shown documents
  std::vector<double> propensity;  // of each rank, given those above it; empty where it has no closed form
  std::vector<double> widths;      // w_ij of every two documents [V × V], where they were asked for

  /// The whole list, and back. What comes back may be answered to any ranker that continues the one that
  /// made the list: itself, or one that was loaded from its state after that round. A copy knows of its own
  /// answer alone.
  std::string bytes() const;
  static ShownList from_bytes(std::string bytes);

  struct Query;
  std::shared_ptr<Query> query;
};

/// An online ranker. Not thread-safe: one thread at a time uses an object, any number of objects may be
/// used side by side.
class Ranker {
 public:
  /// Throws InvalidArgument for settings that do not exist, are out of bounds or contradict each other.
  explicit Ranker(const RankerOptions& options);
  ~Ranker();
  Ranker(Ranker&&) noexcept;
  Ranker& operator=(Ranker&&) noexcept;

  /// Makes the list to show for one query. `docs` are its documents' features, row by row [V × d]. `query`
  /// names the query: documents of one name with equal features are one document to the ranker, whose
  /// history then does not grow when they come back. `with_widths` asks for ShownList::widths, which costs
  /// V × V numbers. `ranks` is how many the user sees, if fewer than the cutoff.
  ShownList rank(std::span<const float> docs, std::string_view query = {}, bool with_widths = false,
                 std::int64_t ranks = 0);

  /// Ranks documents on the ranker's GPU, which stay there: the list comes to the host, and from learn() on
  /// so do the shown documents, which the history keeps. The bits are those of documents of the host.
  ShownList rank(const GpuDocs& docs, std::string_view query = {}, bool with_widths = false,
                 std::int64_t ranks = 0);
  /// The GPU on which rank() reads documents; −1: it takes documents of the host alone.
  int gpu() const;
  /// The stream, a cudaStream_t, in which documents on the GPU are read: the work that writes them has to
  /// be ahead in it, or done. Null: the ranker computes on the CPU or has a module, and takes documents of
  /// the host alone.
  void* gpu_stream();

  /// A list that users saw without this ranker, such as one of a log, as a round of its own: `shown` are
  /// rows of `docs`, best first, at most `cutoff`. learn() takes it as a list of rank(). It has only the
  /// scores of what the ranker knows.
  ShownList shown_list(std::span<const float> docs, std::span<const std::int32_t> shown,
                       std::string_view query = {});

  /// Learns from what a user did with a list of this ranker: clicks[r] is 1 where the document at rank r
  /// was clicked. Lists may be answered in any order or not at all, each once. dbgd and mgd learn from
  /// their latest list only. Returns the number of preference pairs that the clicks gave. `rewards` say
  /// what each click is worth, 1 without them: kinds that learn from pairs count these as often, clickgp
  /// its clicks, and others refuse rewards.
  std::int64_t learn(const ShownList& list, std::span<const std::uint8_t> clicks,
                     std::span<const double> rewards = {});

  /// f(x) of any documents of one query [V × d], without a list and without exploration. Where scores
  /// depend on the other documents, these are the others.
  std::vector<float> score(std::span<const float> docs);
  std::vector<float> score(const GpuDocs& docs);

  /// w_ij of every two documents of one query [V × V]: how uncertain their order is, on the scale of score
  /// differences. Throws InvalidArgument for kinds that have none.
  std::vector<double> widths(std::span<const float> docs);
  std::vector<double> widths(const GpuDocs& docs);

  std::string kind() const;
  std::int64_t features() const;
  std::int64_t cutoff() const;
  std::int64_t parameters() const;
  /// Lists made so far.
  std::uint32_t rounds() const;
  /// 32 hexadecimal digits that stand for the ranker's whole state: equal states have equal fingerprints.
  std::string fingerprint() const;

  /// Every setting that counts, as `key = value` lines.
  std::string settings() const;

  /// Names of the features, which go into saved states and models; empty until they are given. They change
  /// nothing that is computed.
  std::vector<std::string> feature_names() const;
  void name_features(std::vector<std::string> names);

  /// The whole state. A loaded ranker goes on to the same bits. Of a clickgp it is also a file for Model.
  void save(const std::filesystem::path& file) const;
  /// Loads what save() wrote, or the folder of a finished trial of `olrank run`: the ranker as it ended.
  /// One with a TorchScript module, which is code, is refused unless `trust_code`. A ranker that computed
  /// on a GPU goes on there: on the first one, unless `device` names another.
  static Ranker load(const std::filesystem::path& file, int threads = 1, bool trust_code = false,
                     std::string_view device = "auto");
  /// Returns in memory what save() writes.
  std::string bytes() const;
  static Ranker from_bytes(std::string bytes, int threads = 1, bool trust_code = false,
                           std::string_view device = "auto");
  /// The scoring function alone, as a model file: `olrank rank`, `eval`, `export` and `serve` take it.
  void save_model(const std::filesystem::path& file) const;

 private:
  struct State;
  explicit Ranker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The version of the library, such as "0.2.0".
std::string library_version();

}  // namespace olrank
