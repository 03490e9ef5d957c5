#include "recommend/mter/mter_step.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace olrank {
namespace {

constexpr std::int64_t kDrawnTogether = 256;  // entries of one random stream
constexpr std::int64_t kLargestPiece = 256;   // entries
constexpr std::int64_t kRowsOfBlock = 64;
constexpr std::int64_t kIndexes = 9;  // rows and columns of three tensors; users, winners, losers

PhiloxKey batch_key(std::uint64_t seed, std::uint64_t member) {
  return make_key({.seed = seed, .purpose = Purpose::kBatch, .member = member});
}

const SparseTensor& tensor_of_task(const MterTensors& tensors, std::size_t task) {
  return task == 0 ? tensors.preferences : task == 1 ? tensors.user_phrases : tensors.item_phrases;
}

const FactorMatrix& side_of(const std::array<FactorMatrix, kMterSides>& matrices, MterSide side) {
  return matrices[static_cast<std::size_t>(side)];
}

}  // namespace

MterStep::MterStep(const FactorSettings& settings, const MterTensors& tensors, const PairDraws& draws,
                   const ReviewCounts& counts, std::uint64_t seed)
    : settings_(settings),
      tensors_(tensors),
      features_(counts.features + 1),
      pairs_(draws, batch_key(seed, kMterTasks),
             settings.pair_weight > 0.0 && draws.reviews() > 0 ? settings.pairs : 0) {
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    entry_keys_[task] = batch_key(seed, task);
    Batch& batch = batches_[task];
    batch.count = std::min(settings.batch, tensor_of_task(tensors, task).size());
    for (auto* numbers : {&batch.row, &batch.column, &batch.feature}) numbers->resize(batch.count);
    batch.value.resize(batch.count);
  }
}

std::int64_t MterStep::part_size(const MterParameters& parameters) const {
  return parameters.form == MterForm::kTucker ? parameters.width() * parameters.width()
                                              : parameters.width();
}

void MterStep::draw_entries(std::size_t task, std::uint32_t iteration, std::int64_t block) {
  Batch& batch = batches_[task];
  const SparseTensor& tensor = tensor_of_task(tensors_, task);
  RngStream random(entry_keys_[task], iteration, static_cast<std::uint32_t>(block));
  const double stride = static_cast<double>(tensor.size()) / static_cast<double>(batch.count);
  const std::int64_t end = std::min((block + 1) * kDrawnTogether, batch.count);
  for (std::int64_t s = block * kDrawnTogether; s < end; ++s) {
    // With as many draws as entries, each entry is drawn once.
    const double within = batch.count == tensor.size() ? 0.5 : random.next_bits() * 0x1.0p-32;
    const auto entry =
        std::min(static_cast<std::int64_t>((static_cast<double>(s) + within) * stride), tensor.size() - 1);
    batch.row[s] = tensor.row[entry];
    batch.column[s] = tensor.column[entry];
    batch.feature[s] = tensor.feature[entry];
    batch.value[s] = tensor.value[entry];
  }
}

void MterStep::cut_into_pieces(Batch& batch) {
  batch.piece_ends.assign(1, 0);
  batch.feature_ends.assign(1, 0);
  std::int64_t entry = 0;
  for (std::int64_t feature = 0; feature < features_; ++feature) {
    std::int64_t begin = entry;
    while (entry < batch.count && batch.feature[entry] == feature) {
      ++entry;
      if (entry - begin == kLargestPiece) {
        batch.piece_ends.push_back(entry);
        begin = entry;
      }
    }
    if (entry > begin) batch.piece_ends.push_back(entry);
    batch.feature_ends.push_back(std::ssize(batch.piece_ends) - 1);
  }
}

void MterStep::draw(const MterParameters& parameters, ExecutionContext& context, std::uint32_t iteration) {
  const std::int64_t width = parameters.width();
  const bool tucker = parameters.form == MterForm::kTucker;
  for (Batch& batch : batches_) {
    batch.row_gradients.resize(batch.count * width);
    batch.column_gradients.resize(batch.count * width);
    if (!tucker) continue;
    batch.contracted.resize(features_ * width * width);
    batch.transposed.resize(features_ * width * width);
  }
  std::array<std::int64_t, kMterTasks> entry_blocks{};
  for (std::size_t task = 0; task < kMterTasks; ++task)
    entry_blocks[task] = blocks_of(batches_[task].count, kDrawnTogether);
  const std::int64_t contractions = tucker ? static_cast<std::int64_t>(kMterTasks) * features_ : 0;
  const std::int64_t drawn =
      pairs_.blocks() + std::accumulate(entry_blocks.begin(), entry_blocks.end(), std::int64_t{0});
  context.pool().run(drawn + contractions, [&](std::int64_t number, int) {
    if (number < pairs_.blocks()) return pairs_.draw(iteration, number);
    number -= pairs_.blocks();
    for (std::size_t task = 0; task < kMterTasks; ++task) {
      if (number < entry_blocks[task]) return draw_entries(task, iteration, number);
      number -= entry_blocks[task];
    }
    const auto task = static_cast<std::size_t>(number / features_);
    const std::int64_t feature = number % features_;
    Batch& batch = batches_[task];
    contract_core(parameters.cores[task].values.data(),
                  parameters.met(task, MterSide::kFeature).row(feature), parameters.cores[task].rows, width,
                  batch.contracted.data() + feature * width * width,
                  batch.transposed.data() + feature * width * width);
  });
}

void MterStep::entry_piece(const MterParameters& parameters, std::size_t task, std::int64_t piece) {
  Batch& batch = batches_[task];
  const std::int64_t width = parameters.width();
  const std::int64_t begin = batch.piece_ends[piece];
  const std::int64_t feature = batch.feature[begin];
  const bool tucker = parameters.form == MterForm::kTucker;
  const FactorMatrix& rows = parameters.met(task, kRowSide[task]);
  const FactorMatrix& columns = parameters.met(task, kColumnSide[task]);
  EntryPiece entries;
  entries.count = batch.piece_ends[piece + 1] - begin;
  entries.row = batch.row.data() + begin;
  entries.column = batch.column.data() + begin;
  entries.value = batch.value.data() + begin;
  entries.rows = rows.values.data();
  entries.columns = columns.values.data();
  entries.width = width;
  entries.row_columns = rows.columns;
  entries.column_columns = columns.columns;
  entries.contracted = tucker ? batch.contracted.data() + feature * width * width
                              : parameters.met(task, MterSide::kFeature).row(feature);
  entries.transposed = tucker ? batch.transposed.data() + feature * width * width : nullptr;
  entries.weight = 2.0F / static_cast<float>(batch.count);
  entries.row_gradients = batch.row_gradients.data() + begin * width;
  entries.column_gradients = batch.column_gradients.data() + begin * width;
  entries.feature_part = batch.feature_parts.data() + piece * part_size(parameters);
  batch.squares[piece] = tucker ? tucker_entries(entries) : canonical_entries(entries);
}

void MterStep::pair_piece(const MterParameters& parameters, std::int64_t block) {
  const std::int64_t width = parameters.width();
  const std::int64_t overall = features_ - 1;
  const bool tucker = parameters.form == MterForm::kTucker;
  const FactorMatrix& users = parameters.met(0, MterSide::kUser);
  const FactorMatrix& items = parameters.met(0, MterSide::kItem);
  PairPiece piece;
  piece.users = users.values.data();
  piece.items = items.values.data();
  piece.user_columns = users.columns;
  piece.item_columns = items.columns;
  piece.contracted = tucker ? batches_[0].contracted.data() + overall * width * width
                            : parameters.met(0, MterSide::kFeature).row(overall);
  piece.transposed = tucker ? batches_[0].transposed.data() + overall * width * width : nullptr;
  piece.weight = settings_.pair_weight / static_cast<double>(pairs_.count());
  pairs_.differentiate(block, piece);
}

void MterStep::build_index(std::int64_t number, const MterParameters& parameters) {
  if (number < 2 * static_cast<std::int64_t>(kMterTasks)) {
    const auto task = static_cast<std::size_t>(number / 2);
    Batch& batch = batches_[task];
    if (number % 2 == 0) return batch.by_row.build(batch.row, parameters.rows(kRowSide[task]));
    return batch.by_column.build(batch.column, parameters.rows(kColumnSide[task]));
  }
  if (number == 6) return pairs_.index_winners(parameters.rows(MterSide::kItem));
  if (number == 7) return pairs_.index_losers(parameters.rows(MterSide::kItem));
  pairs_.index_users(parameters.rows(MterSide::kUser));  // once the runs are known
}

MterLosses MterStep::gradients(ExecutionContext& context, const MterParameters& parameters,
                               std::uint32_t iteration) {
  draw(parameters, context, iteration);
  const std::int64_t size = part_size(parameters);
  const std::int64_t width = parameters.width();
  pairs_.resize(width, size);
  std::array<std::int64_t, kMterTasks> pieces{};
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    Batch& batch = batches_[task];
    cut_into_pieces(batch);
    pieces[task] = std::ssize(batch.piece_ends) - 1;
    batch.feature_parts.resize(pieces[task] * size);
    batch.squares.resize(pieces[task]);
    batch.feature_sums.resize(features_ * size);
    batch.feature_gradients.resize(features_ * width);
    if (parameters.form == MterForm::kTucker)
      batch.core_gradients.resize(parameters.cores[task].values.size());
  }
  const std::int64_t all_pieces = std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0});
  context.pool().run(kIndexes - 1 + pairs_.blocks() + all_pieces, [&](std::int64_t number, int) {
    if (number < kIndexes - 1) return build_index(number, parameters);
    number -= kIndexes - 1;
    if (number < pairs_.blocks()) return pair_piece(parameters, number);
    number -= pairs_.blocks();
    std::size_t task = 0;
    while (number >= pieces[task]) number -= pieces[task++];
    entry_piece(parameters, task, number);
  });
  const auto tasks = static_cast<std::int64_t>(kMterTasks);
  context.pool().run(tasks * features_ + 1, [&](std::int64_t number, int) {
    if (number == 0) return build_index(kIndexes - 1, parameters);
    --number;
    sum_features(parameters, static_cast<std::size_t>(number / features_), number % features_);
  });
  if (parameters.form == MterForm::kTucker) {
    const std::int64_t layers = parameters.columns(MterSide::kFeature);
    context.pool().run(tasks * layers, [&](std::int64_t number, int) {
      sum_core(parameters, static_cast<std::size_t>(number / layers), number % layers);
    });
  }
  MterLosses losses;
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    const auto& squares = batches_[task].squares;
    if (batches_[task].count > 0) {
      losses.squared_error[task] =
          std::accumulate(squares.begin(), squares.end(), 0.0) / static_cast<double>(batches_[task].count);
    }
  }
  losses.pairs = pairs_.mean_loss();
  return losses;
}

void MterStep::sum_features(const MterParameters& parameters, std::size_t task, std::int64_t feature) {
  Batch& batch = batches_[task];
  const std::int64_t size = part_size(parameters);
  const std::int64_t width = parameters.width();
  float* const sum = batch.feature_sums.data() + feature * size;
  std::memset(sum, 0, sizeof(float) * size);
  for (std::int64_t piece = batch.feature_ends[feature]; piece < batch.feature_ends[feature + 1]; ++piece)
    add_scaled(1.0F, batch.feature_parts.data() + piece * size, size, sum);
  if (task == 0 && feature == features_ - 1) pairs_.add_feature_gradient(sum);
  float* const gradient = batch.feature_gradients.data() + feature * width;
  if (parameters.form != MterForm::kTucker) {
    std::copy(sum, sum + width, gradient);
    return;
  }
  std::fill(gradient, gradient + width, 0.0F);
  for (std::int64_t v = 0; v < parameters.cores[task].rows; ++v)
    gradient[v] = row_product(parameters.cores[task].row(v), sum, size);
}

void MterStep::sum_core(const MterParameters& parameters, std::size_t task, std::int64_t layer) {
  Batch& batch = batches_[task];
  const std::int64_t size = part_size(parameters);
  float* const gradient = batch.core_gradients.data() + layer * size;
  std::memset(gradient, 0, sizeof(float) * size);
  const FactorMatrix& features = parameters.met(task, MterSide::kFeature);
  for (std::int64_t feature = 0; feature < features_; ++feature) {
    const bool pairs = task == 0 && feature == features_ - 1 && pairs_.count() > 0;
    if (batch.feature_ends[feature] == batch.feature_ends[feature + 1] && !pairs) continue;
    add_scaled(features.row(feature)[layer], batch.feature_sums.data() + feature * size, size, gradient);
  }
}

void MterStep::task_gradient(const MterParameters& parameters, std::size_t task, MterSide side,
                             std::int64_t row, float* gradient) const {
  const std::int64_t width = parameters.width();
  const Batch& batch = batches_[task];
  if (side == MterSide::kFeature) {
    add_scaled(1.0F, batch.feature_gradients.data() + row * width, width, gradient);
    return;
  }
  if (kRowSide[task] == side)
    add_rows(batch.row_gradients.data(), batch.by_row.samples_of(row), width, gradient);
  if (kColumnSide[task] == side)
    add_rows(batch.column_gradients.data(), batch.by_column.samples_of(row), width, gradient);
  if (task != 0 || pairs_.count() == 0) return;
  if (side == MterSide::kUser) pairs_.add_user_gradient(row, gradient);
  if (side == MterSide::kItem) pairs_.add_item_gradient(row, gradient);
}

void MterStep::shared_gradient(const MterParameters& parameters, MterSide side, std::int64_t row,
                               float* gradient) const {
  side_of(parameters.shared, side).start_gradient(row, settings_.factor_penalty, gradient);
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    if (task_has(task, side)) task_gradient(parameters, task, side, row, gradient);
  }
}

void MterStep::own_gradient(const MterParameters& parameters, std::size_t task, MterSide side,
                            std::int64_t row, float* gradient) const {
  side_of(parameters.own[task], side).start_gradient(row, settings_.factor_penalty, gradient);
  task_gradient(parameters, task, side, row, gradient);
}

void MterStep::core_gradient(const MterParameters& parameters, std::size_t task, std::int64_t layer,
                             float* gradient) const {
  const FactorMatrix& core = parameters.cores[task];
  const float penalty = static_cast<float>(2.0 * settings_.core_penalty / static_cast<double>(core.rows));
  const float* const sum = batches_[task].core_gradients.data() + layer * core.width;
  for (std::int64_t i = 0; i < core.width; ++i) gradient[i] = sum[i] + penalty * core.row(layer)[i];
  // Padded rows and columns have no gradient of their own, as the vectors there are 0.
}

void MterStep::update_row(MterParameters& parameters, MterSide side, std::int64_t row,
                          float* scratch) const {
  const auto place = static_cast<std::size_t>(side);
  const auto rate = static_cast<float>(settings_.learning_rate);
  FactorMatrix& matrix = parameters.shared[place];
  const std::int64_t width = matrix.width;
  shared_gradient(parameters, side, row, scratch);
  adagrad_step(rate, true, scratch, matrix.squares.data() + row * width, matrix.row(row), width);
  if (parameters.form != MterForm::kSplit) return;
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    if (!task_has(task, side)) continue;
    FactorMatrix& own = parameters.own[task][place];
    own_gradient(parameters, task, side, row, scratch);
    adagrad_step(rate, true, scratch, own.squares.data() + row * width, own.row(row), width);
    parameters.add_up(task, side, row);
  }
}

void MterStep::update(ExecutionContext& context, MterParameters& parameters) {
  std::array<std::int64_t, kMterSides> blocks{};
  for (std::size_t side = 0; side < kMterSides; ++side)
    blocks[side] = blocks_of(parameters.rows(static_cast<MterSide>(side)), kRowsOfBlock);
  const std::int64_t layers =
      parameters.form == MterForm::kTucker ? parameters.columns(MterSide::kFeature) : 0;
  const std::int64_t cores = static_cast<std::int64_t>(kMterTasks) * layers;
  const std::int64_t rows = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
  context.pool().run(cores + rows, [&](std::int64_t number, int) {
    if (number < cores) {
      const auto task = static_cast<std::size_t>(number / layers);
      FactorMatrix& core = parameters.cores[task];
      AlignedVector<float> gradient(core.width);
      core_gradient(parameters, task, number % layers, gradient.data());
      adagrad_step(static_cast<float>(settings_.core_learning_rate), true, gradient.data(),
                   core.squares.data() + number % layers * core.width, core.row(number % layers),
                   core.width);
      return;
    }
    number -= cores;
    std::size_t side = 0;
    while (number >= blocks[side]) number -= blocks[side++];
    AlignedVector<float> scratch(parameters.width());
    const std::int64_t end =
        std::min((number + 1) * kRowsOfBlock, parameters.rows(static_cast<MterSide>(side)));
    for (std::int64_t row = number * kRowsOfBlock; row < end; ++row)
      update_row(parameters, static_cast<MterSide>(side), row, scratch.data());
  });
}

std::int64_t MterStep::bytes(MterForm form, const FactorSettings& settings, const ReviewCounts& counts) {
  const std::int64_t width = MterParameters::common_width(form, settings);
  const std::int64_t part = form == MterForm::kTucker ? width * width : width;
  const auto tasks = static_cast<std::int64_t>(kMterTasks);
  const std::int64_t features = counts.features + 1;
  const std::int64_t pieces = settings.batch / kLargestPiece + features;
  const std::int64_t of_batches =
      tasks * (settings.batch * (2 * width + 4) + pieces * part + 3 * features * part);
  const std::int64_t of_pairs =
      settings.pairs * (2 * width + 9) + settings.pairs / PairDraws::kBlock * part;
  return (of_batches + of_pairs) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace olrank
