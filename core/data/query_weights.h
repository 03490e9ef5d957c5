#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/doc_table.h"
#include "core/io/atomic_file.h"

// The weights that queries have in training from labels. A query's loss is that of its list, so there is
// one weight for each query, where LightGBM's file has one for each document.
namespace olrank {

/// The file with the weights of a text's documents, FILE.weight next to FILE; empty where there is none.
/// Throws DataError where that name is a folder, a pipe, a device or a link to nothing.
std::string weights_file_of(const std::string& path);

/// One weight on each line, for the documents in the order of their text. Throws DataError for a text that
/// says something else, and for documents of one query with different weights.
std::vector<float> read_weights(const std::string& file, const DocTable& docs, const std::string& path);

/// Commits the text of the data, which `text` has whole, and that file with it: it is written where the
/// data have weights, and removed where they have none and the text that it belonged to is replaced. Throws
/// InvalidArgument for such a file without a text, which would be another one's.
void commit_with_weights(const Dataset& data, AtomicFile& text, const std::string& path);

/// Whether it can be a weight: finite and not below 0.
bool is_weight(double weight);

/// Empty where all weights are 1, so that such data are the same as data without weights.
std::vector<float> unless_all_one(std::vector<float> weights);

/// The weights divided by their mean, w_q·n/Σw, so that the mean over queries of w_q·loss_q has the scale
/// of losses; empty without weights.
std::vector<double> relative_weights(const Dataset& data);

}  // namespace olrank
