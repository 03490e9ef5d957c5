#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/doc_table.h"

// The weights that queries have in training from labels. A query's loss is that of its list, so there is
// one weight for each query, where LightGBM's file has one for each document.
namespace olrank {

/// The file with the weights of a text's documents, FILE.weight next to FILE; empty where there is none.
std::string weights_file_of(const std::string& path);

/// One weight on each line, for the documents in the order of their text. Throws DataError for a text that
/// says something else, and for documents of one query with different weights.
std::vector<float> read_weights(const std::string& file, const DocTable& docs, const std::string& path);

/// Writes that file next to a text that has been written, where the data have weights. Where they have
/// none, throws InvalidArgument if there is such a file, which belongs to another text.
void write_weights(const Dataset& data, const std::string& path);

/// Whether it can be a weight: finite and not below 0.
bool is_weight(double weight);

/// Empty where all weights are 1, so that such data are the same as data without weights.
std::vector<float> unless_all_one(std::vector<float> weights);

/// The weights divided by their mean, w_q·n/Σw, so that the mean over queries of w_q·loss_q has the scale
/// of losses; empty without weights.
std::vector<double> relative_weights(const Dataset& data);

}  // namespace olrank
