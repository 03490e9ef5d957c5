#pragma once

#include <stdint.h>

/// olrank for programs in C (C99), and for languages that call C: models that score documents, and rankers
/// that learn from clicks. The handles and their rules are those of <olrank/model.h> and <olrank/ranker.h>.
///
/// Every call that can fail returns a status. After a failure its results are untouched, and
/// olrank_last_error() says in one sentence what is wrong. Documents are rows of float32, `docs` of them
/// one after another. A result is freed by the function of its name, which takes NULL, too.
#ifdef __cplusplus
extern "C" {
#endif

typedef enum olrank_status {
  OLRANK_OK = 0,
  OLRANK_INVALID_ARGUMENT = 1,  // a wrong argument, setting or call
  OLRANK_DATA_ERROR = 2,        // a file has the wrong content
  OLRANK_IO_ERROR = 3,          // a file cannot be read or written
  OLRANK_NUMERIC_ERROR = 4,     // a training diverged
  OLRANK_FAILED = 5             // anything else, such as too little memory
} olrank_status;

/// The sentence of this thread's latest failure, until its next one; "" before the first.
const char* olrank_last_error(void);
/// The version of the library, such as "0.2.0".
const char* olrank_version(void);

/// A function of raw documents. Any number of threads may use one.
typedef struct olrank_model olrank_model;

/// A model file, or the folder of a finished trial or training. One with code is refused unless
/// `trust_code` is not 0.
olrank_status olrank_model_load(const char* file, int trust_code, olrank_model** model);
olrank_status olrank_model_features(const olrank_model* model, int64_t* features);
/// Writes one score for each of the documents. Query q has the documents offsets[q] to offsets[q + 1]; with
/// NULL and 0 queries all are one query.
olrank_status olrank_model_score(const olrank_model* model, const float* values, int64_t docs,
                                 const int64_t* offsets, int64_t queries, double* scores);
void olrank_model_free(olrank_model* model);

/// An online ranker. One thread at a time uses one; several work side by side.
typedef struct olrank_ranker olrank_ranker;

/// A ranker before its first list. `settings` are keys and values in turn with NULL at the end, or NULL
/// alone: {"kind", "olranknet", "width", "32", NULL}. Keys are kind, cutoff, seed, protocol, normalise,
/// threads and device, as RankerOptions of <olrank/ranker.h> has them, and those of a [[ranker]] table.
olrank_status olrank_ranker_create(int64_t features, const char* const* settings, olrank_ranker** ranker);
/// Loads what olrank_ranker_save() wrote, or the folder of a finished trial. It goes on to the same bits.
/// `device` is NULL for the one it computed on.
olrank_status olrank_ranker_load(const char* file, int threads, int trust_code, const char* device,
                                 olrank_ranker** ranker);
olrank_status olrank_ranker_features(const olrank_ranker* ranker, int64_t* features);

/// A pair of rows: `first` is certainly more relevant than `second`.
typedef struct olrank_certain_pair {
  int32_t first;
  int32_t second;
} olrank_certain_pair;

/// A list to show. The library owns it and what it points to; later versions add fields at the end.
typedef struct olrank_list {
  int64_t ranks;                       // number of shown documents
  const int32_t* docs;                 // [ranks], rows of the documents, best first
  const double* propensity;            // [ranks], given the ranks above; NULL without a closed form
  int64_t all_docs;                    // number of documents of the query
  const float* scores;                 // [all_docs], by row
  int64_t certain_pairs;               // number of the shown pairs whose order is certain
  const olrank_certain_pair* certain;  // [certain_pairs]
} olrank_list;

/// The list for one query. `query` names it, or is NULL; documents of a named query are recognised. `ranks`
/// is how many the user sees, 0 for the cutoff.
olrank_status olrank_ranker_rank(olrank_ranker* ranker, const float* values, int64_t docs,
                                 const char* query, int64_t ranks, olrank_list** list);
/// Learns from the clicks on a list, 0 or 1 for each of its ranks; in any order of lists, each list once.
/// `rewards` say what each click is worth, or are NULL.
olrank_status olrank_ranker_learn(olrank_ranker* ranker, const olrank_list* list, const uint8_t* clicks,
                                  const double* rewards, int64_t ranks);
/// Scores of one query's documents, without a list and without exploration.
olrank_status olrank_ranker_score(olrank_ranker* ranker, const float* values, int64_t docs, float* scores);
/// The whole state.
olrank_status olrank_ranker_save(const olrank_ranker* ranker, const char* file);
/// The scoring function, which olrank_model_load() takes.
olrank_status olrank_ranker_save_model(const olrank_ranker* ranker, const char* file);
void olrank_list_free(olrank_list* list);
void olrank_ranker_free(olrank_ranker* ranker);

#ifdef __cplusplus
}
#endif
