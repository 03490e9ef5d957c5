#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/device/libtorch_forms.h"
#include "core/error.h"
#include "core/interface.h"
#include "core/online/online_ranker.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/covariance_matrix.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/tangent_factors.h"

// Covariances: their single operations, whole widths from factors to bits, and what a rebuild adds to the
// library's factorisation. The library waits, so it cannot be captured and is not measured here.
namespace olrank {
namespace {

constexpr std::int64_t kTailRows = InverseFactor::kBlock / 2;  // of L, as many as there are on average
constexpr double kLambda = 10.0;
constexpr double kGramTolerance = 1e-9;  // sums in double, in another order, through differences
constexpr CertaintyRule kRule{0.03, 0.0};

/// A query under one network, with the arrays of its widths.
struct Query : public Interface {
  Operands make;
  std::shared_ptr<MadeDocs> docs;
  NetworkShape shape;
  std::int64_t p;
  double scale;
  Array<double> m;
  Array<std::int64_t> offsets;
  Array<std::int32_t> order;
  Array<std::uint64_t> bits;
  Array<CertaintyRule> rule;
  Array<PreferencePair> pairs;
  Array<device::CovarianceStatus> status;

  Query(const DeviceSizes& of, Stream stream)
      : make{of},
        docs(make_docs(of, stream, of.docs)),
        shape(docs->shape),
        p(shape.parameters()),
        scale(1.0 / real(of.width)),
        m(make.empty<double>({of.docs, of.docs})),
        offsets(make.these(std::vector<std::int64_t>{0, of.docs})),
        order(make.empty<std::int32_t>({of.docs})),
        bits(make.empty<std::uint64_t>({of.docs, OrderBits::words(of.docs)})),
        rule(make.these(std::vector<CertaintyRule>{kRule})),
        status(make.these(std::vector<device::CovarianceStatus>(1))) {
    std::vector<PreferencePair> of_round(kRoundPairs);
    for (std::int32_t s = 0; s < kRoundPairs; ++s) of_round[s] = {2 * s, 2 * s + 1};
    pairs = make.these(of_round);
  }

  /// M, and the same in LibTorch.
  virtual void gram(Stream on) = 0;
  virtual at::Tensor gram_in_libtorch() const = 0;

  at::Tensor rows() const { return docs->first_rows(); }
  /// Computes the orders' bits from M.
  void finish(Stream on) const {
    device::order_by_score(on, 1, offsets, docs->scores, order, nullptr);
    device::certain_by_width(on, {make.sizes.docs, docs->scores, docs->magnitudes, order, m}, rule, bits,
                             nullptr, nullptr);
  }
  at::Tensor finish_in_libtorch(const at::Tensor& full) const {
    return libtorch::certain_by_width(full, docs->scores.t.select(0, 0), docs->magnitudes.t.select(0, 0),
                                      kRule);
  }
  /// The disagreement of M alone, in its lower triangle.
  double gram_disagreement(const at::Tensor& full) const {
    return disagreement_of(at::tril(m.t), at::tril(full));
  }
  /// The disagreement of M, or NaN if more than one bit in a thousand differs: single bits may depend on
  /// the last place.
  double disagreement(const at::Tensor& full) const {
    const at::Tensor certain = finish_in_libtorch(full).to(at::kCPU);
    const at::Tensor words = bits.t.to(at::kCPU);
    const std::int64_t count = make.sizes.docs;
    std::int64_t different = 0;
    for (std::int64_t a = 0; a < count; ++a) {
      for (std::int64_t b = a + 1; b < count; ++b) {
        const auto word = static_cast<std::uint64_t>(words[a][b / 64].item<std::int64_t>());
        different += ((word >> (b % 64) & 1U) != 0) != certain[a][b].item<bool>() ? 1 : 0;
      }
    }
    return real(different) > 1e-3 * real(count * count) ? std::nan("") : gram_disagreement(full);
  }
  void require_sound() const {
    device::CovarianceStatus now;
    std::memcpy(&now, status.t.to(at::kCPU).data_ptr(), sizeof now);
    if (now.failed != 0) throw NumericError("The measured pairs give an indefinite covariance.");
  }
};

/// M alone.
template <class Form>
PrepareWork gram_of(const DeviceSizes& sizes) {
  return [sizes](Stream stream) {
    const auto query = std::make_shared<Form>(sizes, stream);
    const std::function<double(const at::Tensor&)> differs = [=](const at::Tensor& other) {
      return query->gram_disagreement(other);
    };
    return compared([=](Stream on) { query->gram(on); }, [=] { return query->gram_in_libtorch(); }, differs,
                    kGramTolerance);
  };
}

/// Widths from factors to bits.
DeviceWork whole_widths(const std::shared_ptr<Query>& query) {
  const auto own = [=](Stream on) {
    query->gram(on);
    query->finish(on);
  };
  return {.own = own,
          .libtorch = [=] { query->finish_in_libtorch(query->gram_in_libtorch()); },
          .disagreement =
              [=](Stream on) {
                own(on);
                return query->disagreement(query->gram_in_libtorch());
              },
          .tolerance = kGramTolerance};
}

// --- the diagonal covariance ----------------------------------------------------------------------

struct Diagonal : Query {
  Array<double> diagonal;
  Array<double> root;
  Array<double> work;

  Diagonal(const DeviceSizes& of, Stream stream)
      : Query(of, stream),
        diagonal{make.rand<double>({p}).t + kLambda},
        root{(scale / diagonal.t).sqrt()},
        work(make.empty<double>({device::diagonal_gram_workspace(shape, of.docs)})) {}

  void gram(Stream on) override { device::diagonal_gram(on, shape, docs->view(), root, work, m); }
  at::Tensor gram_in_libtorch() const override { return libtorch::diagonal_gram(shape, rows(), root.t); }
};

void add_diagonal(Launches& table) {
  const DeviceSizes sizes = table.sizes;
  const double p = real(table.p), docs = real(sizes.docs), triangle = 0.5 * docs * (docs + 1.0);
  table.add("diagonal_covariance/add_to_diagonal", {{"k", kRoundPairs}, {"p", table.p}},
            {4.0 * real(kRoundPairs) * p, 3.0 * kDoubleBytes * p}, [=](Stream stream) {
              const auto query = std::make_shared<Diagonal>(sizes, stream);
              return alone([=](Stream on) {
                device::add_to_diagonal(on, query->shape, query->docs->view(), query->pairs, kRoundPairs,
                                        1e-6, {query->diagonal, query->root});
              });
            });
  table.add(
      "theory_alpha/diagonal_log_det", {{"p", table.p}}, {2.0 * p, kDoubleBytes * p}, [=](Stream stream) {
        const auto query = std::make_shared<Diagonal>(sizes, stream);
        const auto log_det = query->make.empty<double>({1});
        return compared(
            [=](Stream on) { device::diagonal_log_det(on, query->p, query->diagonal, kLambda, log_det); },
            [=] { return (query->diagonal.t / kLambda).log().sum().view({1}); }, log_det.t, 1e-12);
      });
  // One triangle, all units active: skipping inactive units is to the kernel's credit.
  const LeastWork least{2.0 * p * triangle, rows_bytes(table.shape, docs) + kDoubleBytes * (p + triangle)};
  const CaseParameters parameters{{"V", sizes.docs}, {"m", sizes.width}, {"d", sizes.features}};
  const Wanted wanted{kWantedShare, kWantedWidthRatio};
  table.add("diagonal_covariance/diagonal_gram", parameters, least, gram_of<Diagonal>(sizes), wanted);
  table.add(
      "widths/diagonal", parameters, least,
      [=](Stream stream) { return whole_widths(std::make_shared<Diagonal>(sizes, stream)); }, wanted);
}

// --- the full covariance by the factor of its kernel matrix, after n pairs ------------------------

/// A history of n pairs: their factors, L⁻¹ in two layouts, packed for the kernels and as a matrix, and the
/// newest rows of an L.
struct Dual : Query {
  std::int64_t n;
  std::int64_t count;  // documents of the query
  std::shared_ptr<MadeDocs> seen;
  Array<double> inverse;  // [n × n]
  Array<double> factor;
  Array<double> newest;  // [kBlock × (n + kBlock)]
  Array<double> kernel;  // [n × docs]
  Array<double> s;
  Array<double> apply_work;
  Array<double> gram_work;

  Dual(const DeviceSizes& of, Stream stream, std::int64_t pairs_before)
      : Query(of, stream),
        n(pairs_before),
        count(of.docs),
        seen(make_docs(of, stream, 2 * n)),
        inverse{at::tril(make.randn<double>({n, n}).t * (1e-3 / std::sqrt(real(n))))},
        factor(make.full<double>({device::factor_numbers(n + kRoundPairs)}, 0.0)),
        newest(make.randn<double>({InverseFactor::kBlock, n + InverseFactor::kBlock})),
        kernel(make.empty<double>({n, count})),
        s(make.empty<double>({n, count})),
        apply_work(make.empty<double>({device::apply_factor_workspace(n, count)})),
        gram_work(make.empty<double>({device::tail_workspace(all_inverted(), count, true)})) {
    inverse.t.diagonal().add_(0.01);
    newest.t.mul_(1e-3);
    constexpr std::int64_t kBlock = InverseFactor::kBlock;
    for (std::int64_t b = 0; b * kBlock < n; ++b) {
      const std::int64_t of_block = std::min(kBlock, n - b * kBlock);
      const std::int64_t columns = std::min(kBlock * (b + 1), n);
      factor.t.narrow(0, device::factor_offset(b), kBlock * InverseFactor::stride(b))
          .view({kBlock, InverseFactor::stride(b)})
          .narrow(0, 0, of_block)
          .narrow(1, 0, columns)
          .copy_(inverse.t.narrow(0, b * kBlock, of_block).narrow(1, 0, columns));
    }
    make_kernels(stream, n);
    triangle(stream);
  }

  /// K_VV into m, and K_nV of the first pairs.
  void make_kernels(Stream on, std::int64_t first) const {
    device::FactorRows of_pairs = seen->view();
    of_pairs.docs = 2 * first;
    device::query_kernels(on, shape, docs->view(), of_pairs, scale, m, kernel, count);
  }
  void triangle(Stream on) const {
    device::apply_factor(on, n, factor, count, kernel, apply_work, s, count);
  }
  void finish_gram(Stream on) const {
    device::dual_gram(on, all_inverted(), count, nullptr, s, count, kLambda, gram_work, m);
  }
  /// No rows, below n rows of L⁻¹.
  device::FactorTail all_inverted() const {
    device::FactorTail tail;
    tail.head = n;
    return tail;
  }
  /// The rows of a tail as the kernels see them, and of its block's inverse.
  at::Tensor rows_of(const device::FactorTail& tail) const {
    return newest.t.view({-1}).narrow(0, 0, tail.numbers()).view({InverseFactor::kBlock, tail.stride()});
  }
  at::Tensor block_of(const device::FactorTail& tail) const {
    return at::tril(rows_of(tail).narrow(0, 0, tail.rows).narrow(1, tail.head, tail.rows));
  }
  void gram(Stream on) override {
    make_kernels(on, n);
    triangle(on);
    finish_gram(on);
  }
  at::Tensor kernel_in_libtorch() const {
    return libtorch::pair_doc_kernel(shape, seen->first_rows(), rows(), scale);
  }
  at::Tensor doc_kernel_in_libtorch() const { return libtorch::doc_kernel(shape, rows(), scale); }
  at::Tensor gram_in_libtorch() const override {
    return libtorch::dual_gram(doc_kernel_in_libtorch(), at::mm(inverse.t, kernel_in_libtorch()), kLambda);
  }
};

/// A multiplication and an addition per number of a row of tangent factors; for pairs and documents both
/// documents of a pair in every layer except the last, where their difference is enough.
double query_kernels_operations(const NetworkShape& shape, double pairs, double docs) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  const double of_pair = 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
  return pairs * docs * of_pair + docs * (docs + 1.0) * real(shape.factors());
}

/// K_VV, and K_nV unless n = 0.
DeviceWork query_kernels_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const auto query = std::make_shared<Dual>(sizes, stream, std::max<std::int64_t>(n, 1));
  const auto own = [=](Stream on) { query->make_kernels(on, n); };
  const auto form = [=] {
    query->doc_kernel_in_libtorch();
    if (n > 0) query->kernel_in_libtorch();
  };
  const auto disagreement = [=](Stream on) {
    own(on);
    const double of_docs = query->gram_disagreement(query->doc_kernel_in_libtorch());
    return n == 0 ? of_docs
                  : std::max(of_docs, disagreement_of(query->kernel.t, query->kernel_in_libtorch()));
  };
  return {.own = own, .libtorch = form, .disagreement = disagreement, .tolerance = 1e-12};
}

DeviceWork dual_gram_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const auto query = std::make_shared<Dual>(sizes, stream, n);
  const at::Tensor before = query->doc_kernel_in_libtorch();
  query->m.t.copy_(before);
  const auto form = [=] { return libtorch::dual_gram(before, query->s.t, kLambda); };
  const auto disagreement = [=](Stream on) {
    query->m.t.copy_(before);  // overwritten by each call
    query->finish_gram(on);
    return query->gram_disagreement(form());
  };
  return {.own = [=](Stream on) { query->finish_gram(on); },
          .libtorch = [=] { form(); },
          .disagreement = disagreement,
          .tolerance = kGramTolerance};
}

/// Every call writes the same rows, beyond those that it reads. With M = I, I + ΔMΔᵀ = 3I.
DeviceWork append_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const auto query = std::make_shared<Dual>(sizes, stream, n);
  query->m.t.copy_(at::eye(sizes.docs, query->m.t.options()));
  const auto scratch = query->make.empty<double>({device::append_workspace(n, kRoundPairs)});
  const device::FactorTail tail(n, query->newest);
  const std::function<double(const at::Tensor&)> differs = [=](const at::Tensor& other) {
    query->require_sound();
    const at::Tensor rows = query->rows_of(tail).narrow(0, tail.rows, kRoundPairs);
    return disagreement_of(rows.narrow(1, 0, other.size(1)), other);
  };
  return compared(
      [=](Stream on) {
        device::append_pairs(on, n, query->factor, query->newest, sizes.docs, query->s, sizes.docs,
                             query->m, kLambda, query->pairs, kRoundPairs, scratch, query->status);
      },
      [=] {
        const at::Tensor pairs = query->s.t.narrow(1, 0, 2 * kRoundPairs).view({n, kRoundPairs, 2});
        const at::Tensor u = (pairs.select(2, 0) - pairs.select(2, 1)).t();
        const double root = std::sqrt(3.0 * kLambda);
        return at::cat({u.narrow(1, 0, tail.head),
                        at::mm(u.narrow(1, tail.head, tail.rows), query->block_of(tail)) / -root,
                        at::eye(kRoundPairs, u.options()) / root},
                       1);
      },
      differs, 1e-10);
}

/// T (K − U S) for a tail of half a block below n rows.
DeviceWork apply_tail_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const auto query = std::make_shared<Dual>(sizes, stream, n);
  device::FactorTail tail = query->all_inverted();
  tail.rows = kTailRows;
  tail.values = query->newest;
  const auto x = query->make.randn<double>({n + kTailRows, sizes.docs});
  const auto s = query->make.randn<double>({n + kTailRows, sizes.docs});
  const auto scratch = query->make.empty<double>({device::tail_workspace(tail, sizes.docs, false)});
  return compared([=](Stream on) { device::apply_tail(on, tail, sizes.docs, x, scratch, s, sizes.docs); },
                  [=] {
                    const at::Tensor u = query->rows_of(tail).narrow(0, 0, kTailRows).narrow(1, 0, n);
                    return at::mm(query->block_of(tail),
                                  x.t.narrow(0, n, kTailRows) - at::mm(u, s.t.narrow(0, 0, n)));
                  },
                  s.t.narrow(0, n, kTailRows), 1e-10);
}

/// A whole block's rows −T U L⁻¹ and T below the whole blocks of n rows.
DeviceWork close_tail_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  constexpr std::int64_t kBlock = InverseFactor::kBlock;
  const auto query = std::make_shared<Dual>(sizes, stream, n);
  device::FactorTail tail(n, query->newest);
  tail.rows = kBlock;
  query->rows_of(tail).narrow(1, tail.head, kBlock).tril_();
  const auto scratch = query->make.empty<double>({device::append_workspace(n, kBlock)});
  const at::Tensor rows = query->factor.t.narrow(0, device::factor_offset(n / kBlock), tail.numbers())
                              .view({kBlock, tail.stride()});
  return compared([=](Stream on) { device::close_tail(on, tail, query->factor, scratch, query->status); },
                  [=] {
                    const at::Tensor block = query->block_of(tail);
                    const at::Tensor u = query->rows_of(tail).narrow(1, 0, tail.head);
                    const at::Tensor head =
                        query->inverse.t.narrow(0, 0, tail.head).narrow(1, 0, tail.head);
                    return at::cat({at::mm(block, at::mm(u, head)).neg(), block}, 1);
                  },
                  rows, 1e-10);
}

void add_dual(Launches& table, std::int64_t n) {
  const DeviceSizes sizes = table.sizes;
  const CaseParameters of_pairs{{"n", n}, {"V", sizes.docs}, {"m", sizes.width}, {"d", sizes.features}};
  const double docs = real(sizes.docs), pairs = real(n), of_docs = 0.5 * docs * (docs + 1.0);
  const double kernels = query_kernels_operations(table.shape, pairs, docs);
  const double rows = rows_bytes(table.shape, 2.0 * pairs + docs);
  const Wanted wanted{table.share_at(n)};
  table.add("tangent_kernel/query_kernels", of_pairs,
            {kernels, rows + kDoubleBytes * (pairs * docs + of_docs)},
            [=](Stream stream) { return query_kernels_work(sizes, stream, n); },
            {wanted.share, n > 0 ? kWantedWidthRatio : 0.0});
  if (n == 0) return;
  const double triangle = pairs * (pairs + 1.0) * docs, gram = 2.0 * pairs * of_docs;
  const double factor_bytes = 0.5 * kDoubleBytes * pairs * (pairs + 1.0),
               s_bytes = kDoubleBytes * pairs * docs;
  table.add(
      "inverse_factor/apply_factor", {{"n", n}, {"V", sizes.docs}},
      {triangle, factor_bytes + 2.0 * s_bytes},
      [=](Stream stream) {
        const auto query = std::make_shared<Dual>(sizes, stream, n);
        return compared([=](Stream on) { query->triangle(on); },
                        [=] { return at::mm(query->inverse.t, query->kernel.t); }, query->s.t, 1e-10);
      },
      wanted);
  table.add(
      "inverse_factor/apply_factor_transposed", {{"n", n}, {"columns", kProbes}},
      {kProbes * pairs * (pairs + 1.0), factor_bytes},
      [=](Stream stream) {
        const auto query = std::make_shared<Dual>(sizes, stream, n);
        const auto x = query->make.randn<double>({n, kProbes});
        const auto y = query->make.empty<double>({kProbes, n});
        const auto scratch =
            query->make.empty<double>({device::apply_factor_transposed_workspace(n, kProbes)});
        const auto run = [=](Stream on) {
          device::apply_factor_transposed(on, query->all_inverted(), query->factor, kProbes, x, scratch, y);
        };
        return compared(
            run, [=] { return at::mm(x.t.t(), query->inverse.t); }, y.t, 1e-10);
      },
      wanted);
  table.add(
      "inverse_factor/dual_gram", {{"n", n}, {"V", sizes.docs}},
      {gram, s_bytes + 2.0 * kDoubleBytes * of_docs},
      [=](Stream stream) { return dual_gram_work(sizes, stream, n); }, wanted);
  table.add("inverse_factor/append_pairs", {{"n", n}, {"k", kRoundPairs}, {"V", sizes.docs}},
            {pairs * real(kRoundPairs), 3.0 * kDoubleBytes * pairs * real(kRoundPairs)},
            [=](Stream stream) { return append_work(sizes, stream, n); });
  const double tail_rows = real(kTailRows), block = real(InverseFactor::kBlock);
  table.add("inverse_factor/apply_tail", {{"n", n}, {"V", sizes.docs}},
            {2.0 * pairs * tail_rows * docs, s_bytes + kDoubleBytes * pairs * tail_rows},
            [=](Stream stream) { return apply_tail_work(sizes, stream, n); });
  table.add("inverse_factor/close_tail", {{"n", n}},
            {pairs * (pairs + 1.0) * block, factor_bytes + 2.0 * kDoubleBytes * pairs * block},
            [=](Stream stream) { return close_tail_work(sizes, stream, n); });
  table.add("widths/full-dual", of_pairs, {kernels + triangle + gram, rows + factor_bytes + 2.0 * s_bytes},
            [=](Stream stream) { return whole_widths(std::make_shared<Dual>(sizes, stream, n)); },
            {wanted.share, kWantedWidthRatio});
}

// --- the full covariance in the primal form, A⁻¹ --------------------------------------------------

/// A⁻¹ as rounds find it: half of the rows that correct it are there.
struct Primal : Query {
  static constexpr std::int64_t kAll = device::DelayedInverse::kRows;
  static constexpr std::int64_t kRows = kAll / 2;

  Array<double> inverse;
  Array<double> tail;  // kRows rows, and zeros
  Array<double> w;
  Array<double> gram_work;
  device::ProductPlans plans;
  device::Products products;  // of the stream that this was made for

  Primal(const DeviceSizes& of, Stream stream)
      : Query(of, stream),
        tail(make.full<double>({kAll, p}, 0.0)),
        w(make.empty<double>({of.docs, p})),
        gram_work(make.empty<double>({device::inverse_gram_workspace(shape, of.docs)})),
        products(plans, stream) {
    const at::Tensor seen = make.randn<double>({p, 4}).t * (0.1 / std::sqrt(real(p)));
    inverse.t = at::mm(seen, seen.t());
    inverse.t.diagonal().add_(1.0 / kLambda);
    q().copy_(rows_of_q(kRows));
    gram(stream);
  }

  void gram(Stream /*on*/) override {
    device::inverse_covariance_gram(products, shape, docs->view(), scale, {inverse, tail, kRows}, gram_work,
                                    w, m);
  }
  at::Tensor q() const { return tail.t.narrow(0, 0, kRows); }
  /// Small beside A⁻¹, as what single pairs take out of it.
  at::Tensor rows_of_q(std::int64_t count) const {
    return make.randn<double>({count, p}).t * (0.01 / std::sqrt(real(p)));
  }
  at::Tensor gram_in_libtorch() const override {
    return libtorch::inverse_gram(shape, rows(), inverse.t, q(), scale);
  }
};

DeviceWork close_work(const DeviceSizes& sizes, Stream stream) {
  const auto query = std::make_shared<Primal>(sizes, stream);
  const at::Tensor q = query->rows_of_q(Primal::kAll);
  const auto close = [=] {
    device::DelayedInverse a{query->inverse, query->tail, Primal::kAll};
    device::close_inverse(query->products, query->p, a);
  };
  const at::Tensor other = query->inverse.t.clone();
  const auto disagreement = [=](Stream) {
    const at::Tensor before = query->inverse.t.clone();
    close();
    return disagreement_of(query->inverse.t - before, at::mm(q.t(), q).neg());
  };
  return {.own = [=](Stream) { close(); },
          .libtorch = [=] { other.addmm_(q.t(), q, 1.0, -1.0); },
          .refresh = [=] { query->tail.t.copy_(q); },  // a close leaves zeros
          .disagreement = disagreement,
          .tolerance = 1e-9};
}

void add_primal(Launches& table) {
  const DeviceSizes sizes = table.sizes;
  const double p = real(table.p), square = p * p, docs = real(sizes.docs);
  const CaseParameters parameters{{"V", sizes.docs}, {"p", table.p}};
  const double corrected = real(Primal::kRows);
  const LeastWork gram{2.0 * square * docs + 4.0 * corrected * p * docs + p * docs * (docs + 1.0),
                       kDoubleBytes * p * (p + corrected + 4.0 * docs)};
  table.add("inverse_covariance/inverse_covariance_gram", parameters, gram, gram_of<Primal>(sizes),
            {kWantedShare});
  table.add("widths/full-primal", parameters, gram,
            [=](Stream stream) { return whole_widths(std::make_shared<Primal>(sizes, stream)); },
            {kWantedShare, kWantedWidthRatio});
  const double rows = real(Primal::kAll);
  table.add("inverse_covariance/close_inverse", {{"k", Primal::kAll}, {"p", table.p}},
            {2.0 * rows * square, 2.0 * kDoubleBytes * square},
            [=](Stream stream) { return close_work(sizes, stream); }, {kWantedShare});
}

// --- rebuilds -------------------------------------------------------------------------------------

DeviceWork pair_kernel_work(const DeviceSizes& sizes, Stream stream, std::int64_t n) {
  const Operands make{sizes};
  const auto docs = make_docs(sizes, stream, 2 * n);
  const auto b = make.empty<double>({n, n});
  const auto work = make.empty<double>({device::pair_kernel_workspace(n)});
  const double scale = 1.0 / real(sizes.width);
  return compared(
      [=](Stream on) { device::pair_kernel(on, docs->shape, docs->view(), scale, kLambda, work, b); },
      [=] {
        const at::Tensor rows = docs->first_rows();
        const at::Tensor sides = libtorch::pair_doc_kernel(docs->shape, rows, rows, scale).view({n, n, 2});
        at::Tensor sum = sides.select(2, 0) - sides.select(2, 1);
        sum.diagonal().add_(kLambda);
        return sum;
      },
      [=](const at::Tensor& other) { return disagreement_of(at::tril(b.t), at::tril(other)); }, 1e-12);
}

/// A k × k factor and its inverse, a third of k³ products each. With M = I, disjoint pairs have
/// I + ΔMΔᵀ = 3I.
void add_corner(Launches& table) {
  const DeviceSizes sizes = table.sizes;
  const double square = real(kRoundPairs * kRoundPairs);
  table.add("pair_corner/factor_pair_corner", {{"k", kRoundPairs}, {"V", sizes.docs}},
            {square * real(kRoundPairs), 2.0 * kDoubleBytes * square}, [=](Stream stream) {
              const auto query = std::make_shared<Diagonal>(sizes, stream);
              query->m.t.copy_(at::eye(sizes.docs, query->m.t.options()));
              const auto corner = query->make.empty<double>({kRoundPairs, kRoundPairs});
              const auto inverse = query->make.empty<double>({kRoundPairs, kRoundPairs});
              return compared(
                  [=](Stream on) {
                    device::factor_pair_corner(on, sizes.docs, query->m, query->pairs, kRoundPairs, corner,
                                               inverse, query->status);
                  },
                  [=] { return at::eye(kRoundPairs, inverse.t.options()) / std::sqrt(3.0); },
                  [=](const at::Tensor& other) { return disagreement_of(at::tril(inverse.t), other); },
                  1e-14);
            });
}

void add_rebuilds(Launches& table) {
  const DeviceSizes sizes = table.sizes;
  const std::int64_t n = table.most_pairs;
  const double half = 0.5 * real(n) * real(n + 1);
  table.add("covariance_matrix/pair_kernel", {{"n", n}, {"m", sizes.width}, {"d", sizes.features}},
            {half * 8.0 * real(table.shape.factors()),
             2.0 * rows_bytes(table.shape, real(n)) + kDoubleBytes * half},
            [=](Stream stream) { return pair_kernel_work(sizes, stream, n); });
}

}  // namespace

void add_covariances(Launches& table) {
  add_diagonal(table);
  add_dual(table, 0);
  for (const std::int64_t n : table.sizes.pairs) add_dual(table, n);
  add_corner(table);
  add_primal(table);
  add_rebuilds(table);
}

}  // namespace olrank
