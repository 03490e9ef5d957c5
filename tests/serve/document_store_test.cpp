#include "serve/document_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/data/normaliser.h"
#include "core/io/atomic_file.h"
#include "serve/api_error.h"
#include "serve/requests.h"
#include "serve/schema_change.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/api_refusal.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr std::int64_t kStoredColumns = 3;

FittedNormaliser list_scaling() {
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kQueryMinmax;
  normaliser.features = kStoredColumns;
  return normaliser;
}

DocumentStore::Settings store_settings(const TemporaryFolder& folder, std::size_t bytes = 1'000'000) {
  return {folder.path(), "schema", normaliser_text(list_scaling()), bytes};
}

/// A list of the versions, of which the first was shown.
FeedbackRecord list_of_versions(const std::vector<std::pair<std::string, std::int64_t>>& docs) {
  FeedbackRecord record;
  record.impression = "i";
  record.clicks = {1};
  record.has_unshown = true;
  for (const auto& [id, version] : docs) {
    record.docs.push_back({id, false});
    record.versions.push_back(version);
  }
  return record;
}

/// The obvious formula: inputs of raw rows that are scaled within their list.
std::vector<float> scaled_inputs(const std::vector<std::vector<float>>& rows) {
  std::vector<float> raw;
  for (const auto& row : rows) raw.insert(raw.end(), row.begin(), row.end());
  std::vector<float> inputs(raw.size());
  list_scaling().apply({raw.data(), std::ssize(rows), kStoredColumns}, inputs.data());
  return inputs;
}

class DocumentStoreTest : public testing::Test {
 protected:
  using Row = std::vector<float>;
  using Versions = std::vector<std::int64_t>;

  static std::int64_t put(DocumentStore& store, const std::string& id, const Row& row,
                          std::int64_t version = 0) {
    return store.put({stored_document(id, version, row)}).front();
  }
  static void expect_inputs(const DocumentVersions& versions,
                            const std::vector<std::pair<std::string, std::int64_t>>& docs,
                            const std::vector<Row>& rows, const std::string& schema = "") {
    FeedbackRecord record = list_of_versions(docs);
    record.schema = schema;
    EXPECT_EQ(versions.apply(record), "");
    EXPECT_EQ(record.inputs, scaled_inputs(rows)) << schema << " " << docs[0].second;
    EXPECT_TRUE(record.versions.empty());
  }

  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / DocumentVersions::kFile;
  const Row one = {1.0F, 2.0F, 3.0F};
};

TEST_F(DocumentStoreTest, KeepsEachVersionAndGivesItToRecords) {
  const std::vector<float> old = {1.0F, 2.0F, 3e-40F};
  const std::vector<float> now = {4.0F, -0.0F, 0.1F};
  const std::vector<float> other = {2.5F, 7.0F, 1e30F};
  {
    DocumentStore store(store_settings(folder));
    EXPECT_TRUE(store.is_empty());
    EXPECT_EQ(store.put({stored_document("a", 0, old), stored_document("b", 7, other)}), (Versions{1, 7}));
    EXPECT_EQ(put(store, "a", now), 2);
    EXPECT_EQ(*store.newest("a"), stored_document("a", 2, now));
  }
  DocumentStore store(store_settings(folder));  // as after a kill
  EXPECT_EQ(*store.newest("a"), stored_document("a", 2, now));
  EXPECT_EQ(store.counts().documents, 2);
  EXPECT_EQ(store.counts().versions, 3);
  EXPECT_EQ(store.remove(std::vector<std::string>{"a", "unknown"}), 1);
  EXPECT_EQ(store.newest("a"), nullptr);
  EXPECT_EQ(put(store, "a", old), 3);
  const DocumentVersions beside(file);
  for (const DocumentVersions* versions : {static_cast<const DocumentVersions*>(&store), &beside}) {
    for (const auto& [version, row] : {std::pair(1, old), {2, now}, {3, old}})
      expect_inputs(*versions, {{"a", version}, {"b", 7}}, {row, other});
    FeedbackRecord unknown = list_of_versions({{"a", 4}});
    EXPECT_TRUE(contains(versions->apply(unknown), "version 4 of document 'a', which "));
  }
}

TEST_F(DocumentStoreTest, TakesTheNumbersOfTheRequestInPlaceOfStoredOnes) {
  DocumentStore store(store_settings(folder));
  put(store, "a", one);
  FeedbackRecord record = list_of_versions({{"a", 1}, {"sent", 0}});
  record.rest = {{"left", false}};
  record.versions.push_back(0);
  record.given = {{0, 1, -0.0F}, {1, 0, 5.0F}, {2, 2, 9.0F}};
  FeedbackRecord read;
  const std::string line = record_line(1, record_body(record));
  ASSERT_FALSE(parse_record(std::string_view(line).substr(0, line.size() - 1), read));
  read.round = 0;
  EXPECT_EQ(read, record);
  EXPECT_TRUE(std::signbit(read.given[0].value));
  ASSERT_EQ(store.apply(read), "");
  std::vector<float> inputs = scaled_inputs({{1.0F, -0.0F, 3.0F}, {5.0F, 0.0F, 0.0F}, {0.0F, 0.0F, 9.0F}});
  inputs.resize(2 * kStoredColumns);
  EXPECT_EQ(read.inputs, inputs);
  FeedbackRecord beyond = record;
  beyond.given[0].column = kStoredColumns;
  EXPECT_EQ(store.apply(beyond), "The record gives column 3, but its documents have 3.");
}

TEST_F(DocumentStoreTest, RefusesVersionsThatGoBackAndRepeatsHarmlessly) {
  DocumentStore store(store_settings(folder));
  put(store, "a", one, 5);
  EXPECT_EQ(refusal_text([&] {
              store.put({stored_document("b", 0, one), stored_document("a", 4, one)});
            }),
            "409 documents[1].version: Document 'a' has version 5, which is newer than 4.");
  EXPECT_EQ(store.newest("b"), nullptr);
  EXPECT_EQ(
      refusal_text([&] {
        put(store, "a", {1.0F, 2.0F, 4.0F}, 5);
      }),
      "409 documents[0].version: Document 'a' has another content in version 5: give the new content a "
      "higher version.");
  const std::int64_t bytes = store.counts().log_bytes;
  EXPECT_EQ(put(store, "a", one, 5), 5);  // a retry
  EXPECT_EQ(store.counts().log_bytes, bytes);
  store.remove(std::vector<std::string>{"a"});
  EXPECT_NE(refusal_text([&] { put(store, "a", one, 5); }), "none");
}

TEST_F(DocumentStoreTest, RefusesWhatMemoryAndDiskDoNotHold) {
  const ExpectedWarnings warnings;
  std::vector<StoredDocument> many;
  for (int i = 0; i < 50; ++i) many.push_back(stored_document(fmt::format("d{}", i), 0, one));
  {
    DocumentStore store(store_settings(folder, 5000));
    put(store, "a", one);
    const std::string full = refusal_text([&] { store.put(many); });
    EXPECT_EQ(full.find("507 documents: All documents would need "), 0U) << full;
    EXPECT_TRUE(contains(full, "--max-document-memory is 5.0 kB: nothing was stored."));
    EXPECT_EQ(store.counts().documents, 1);
    EXPECT_LE(store.counts().bytes, 5000U);
    {
      const FullDisk disk(static_cast<rlim_t>(store.counts().log_bytes) + 20);
      EXPECT_EQ(status_of([&] { put(store, "b", one); }), 507);
    }
    EXPECT_EQ(store.newest("b"), nullptr);
    put(store, "b", one);
  }
  EXPECT_EQ(DocumentStore(store_settings(folder, 100)).counts().documents,
            2);  // a lower limit loses nothing
  ASSERT_EQ(warnings.messages().size(), 2U);
  EXPECT_TRUE(warnings.messages()[0].ends_with("Documents are refused until there is space."));
  EXPECT_TRUE(warnings.messages()[1].ends_with("Documents are stored again."));
}

TEST_F(DocumentStoreTest, HasAllDocumentsOfARequestThatAKillHasCutOrNone) {
  std::string whole;
  {
    DocumentStore store(store_settings(folder));
    put(store, "a", one);
    const Row next = {4.0F, 5.0F, 6.0F};
    store.put(
        {stored_document("a", 0, next), stored_document("b", 0, next), stored_document("c", 0, next)});
    whole = read_file(file);
  }
  const Row later = {7.0F, 8.0F, 9.0F};
  std::vector<std::size_t> ends;
  for (std::size_t end = whole.find('\n'); end != std::string::npos; end = whole.find('\n', end + 1))
    ends.push_back(end + 1);
  ASSERT_EQ(ends.size(), 5U);  // a head, a document, and three that belong together
  for (std::size_t lines = 2; lines < 5; ++lines) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << whole.substr(0, ends[lines - 1]);
    {
      DocumentStore store(store_settings(folder));
      EXPECT_EQ(store.counts().documents, 1) << lines;
      EXPECT_EQ(store.newest("a")->version, 1);
      // Later lines do not complete it.
      put(store, "d", later);
      store.put({stored_document("a", 0, later), stored_document("e", 0, later)});
    }
    const DocumentStore store(store_settings(folder));
    EXPECT_EQ(store.counts().documents, 3) << lines;
    EXPECT_EQ(*store.newest("a"), stored_document("a", 2, later));
    EXPECT_EQ(store.newest("b"), nullptr);
    expect_inputs(DocumentVersions(file), {{"a", 2}, {"d", 1}, {"e", 1}}, {later, later, later});
  }
}

TEST_F(DocumentStoreTest, TakesRequestsOfSeveralThreadsInOneOrderForEachDocument) {
  constexpr int kThreads = 6;
  constexpr int kRequests = 40;
  {
    DocumentStore store(store_settings(folder));
    std::mutex mutex;
    std::set<std::int64_t> versions;  // of the document that all write
    in_threads(kThreads, [&](int thread) {
      for (int i = 0; i < kRequests; ++i) {
        const auto given = store.put(
            {stored_document("shared", 0, {static_cast<float>(thread), static_cast<float>(i), 1.0F}),
             stored_document(fmt::format("{}-{}", thread, i), 0, one)});
        const std::lock_guard lock(mutex);
        versions.insert(given[0]);
      }
    });
    EXPECT_EQ(versions.size(), static_cast<std::size_t>(kThreads * kRequests));
    EXPECT_EQ(*versions.rbegin(), kThreads * kRequests);
    EXPECT_EQ(store.counts().documents, kThreads * kRequests + 1);
  }
  const DocumentStore store(store_settings(folder));
  EXPECT_EQ(store.counts().documents, kThreads * kRequests + 1);
  EXPECT_EQ(store.newest("shared")->version, kThreads * kRequests);
  FeedbackRecord record = list_of_versions({{"shared", 7}, {"0-0", 1}});
  EXPECT_EQ(store.apply(record), "");
}

TEST_F(DocumentStoreTest, ReadsOldVersionsFromCompressedSegments) {
  {
    DocumentStore store(store_settings(folder));
    for (int i = 0; i < 6; ++i) {
      store.put({stored_document("a", 0, {static_cast<float>(i), 2.0F, 3.0F}),
                 stored_document("b", 0, {1.0F, static_cast<float>(i), 3.0F})});
      if (i % 2 == 1) store.compact({});
    }
    EXPECT_EQ(store.newest("a")->version, 6);
  }
  EXPECT_EQ(LogText(file).segments().size(), 3U);
  DocumentStore store(store_settings(folder));
  const DocumentVersions beside(file);
  for (int i = 0; i < 6; ++i) {
    for (const DocumentVersions* versions : {static_cast<const DocumentVersions*>(&store), &beside})
      expect_inputs(*versions, {{"a", i + 1}, {"b", i + 1}},
                    {{static_cast<float>(i), 2.0F, 3.0F}, {1.0F, static_cast<float>(i), 3.0F}});
  }
  EXPECT_EQ(put(store, "a", {9.0F, 9.0F, 9.0F}), 7);
}

TEST_F(DocumentStoreTest, AChangedSchemaKeepsTheVersionsOfItsDocuments) {
  const std::vector<float> now = {3.0F, 2.0F, 1.0F};
  const std::vector<float> next = {7.0F, 8.0F, 9.0F};
  const std::string normaliser = normaliser_text(list_scaling());
  const auto reversed = [](StoredDocument& one) { std::reverse(one.columns.begin(), one.columns.end()); };
  DocumentStore::Settings changed = store_settings(folder);
  changed.schema = "after";
  const auto expect_all = [&](const DocumentVersions& versions) {
    for (const auto& [schema, version, row] :
         {std::tuple("schema", 4, one), {"after", 4, now}, {"after", 5, next}})
      expect_inputs(versions, {{"a", version}}, {row}, schema);
  };
  {
    DocumentStore store(store_settings(folder));
    store.put({stored_document("a", 4, one), stored_document("b", 1, one)});
    EXPECT_TRUE(store.change_schema(documents_head("after", normaliser),
                                    {documents_head("schema", normaliser), reversed}));
    EXPECT_EQ(*store.newest("a"), stored_document("a", 4, now));
    EXPECT_EQ(put(store, "a", now, 4), 4);
    EXPECT_EQ(put(store, "a", next, 5), 5);
    expect_all(store);
  }
  DocumentStore store(changed);
  EXPECT_EQ(*store.newest("b"), stored_document("b", 1, now));
  EXPECT_EQ(store.counts().documents, 2);
  expect_all(store);
  expect_all(DocumentVersions(file));
}

TEST_F(DocumentStoreTest, ASchemaThatComesBackHasItsVersionsAsTheyWere) {
  const std::string normaliser = normaliser_text(list_scaling());
  const std::string head = documents_head("schema", normaliser);
  const std::string other = documents_head("other", normaliser);
  const auto drops = [](StoredDocument& one) { one.columns[0] = 0.0F; };
  const std::vector<float> during = {4.0F, 5.0F, 7.0F};
  const std::vector<float> kept = {0.0F, 5.0F, 7.0F};
  const auto expect_both = [&](const DocumentVersions& versions) {
    expect_inputs(versions, {{"a", 5}, {"b", 1}}, {one, kept}, "schema");
    expect_inputs(versions, {{"a", 5}, {"b", 1}}, {{0.0F, 2.0F, 3.0F}, during}, "other");
  };
  {
    DocumentStore store(store_settings(folder));
    put(store, "a", one, 5);
    EXPECT_TRUE(store.change_schema(other, {head, drops}));
    put(store, "b", during, 1);
    EXPECT_TRUE(store.change_schema(head, {other, drops}));
    EXPECT_EQ(*store.newest("a"), stored_document("a", 5, one));
    expect_both(store);
  }
  const DocumentStore store(store_settings(folder));
  EXPECT_EQ(*store.newest("a"), stored_document("a", 5, one));
  expect_both(store);
  expect_both(DocumentVersions(file));
}

TEST_F(DocumentStoreTest, AStartLeavesAChangeThatWaitsForTheDisk) {
  const std::filesystem::path schemas = folder.path() / "schemas.json";
  const SchemaPair pair{"[[feature]]\nname = \"older\"\n", "[[feature]]\nname = \"newer\"\n"};
  pair.write(schemas);
  SchemaChange change({schemas, pair.after, [](const std::string&) { return ResolvedService(); }, {}, {}});
  change.resume();
  EXPECT_EQ(SchemaPair::read(schemas), pair);
}

TEST_F(DocumentStoreTest, AStartWithAFullDiskLeavesTheChangeToTheNextOne) {
  { DocumentStore(store_settings(folder)).put({stored_document("a", 4, one)}); }
  DocumentStore::Settings changed = store_settings(folder);
  changed.schema = "after";
  changed.before = {documents_head("schema", normaliser_text(list_scaling())),
                    [](StoredDocument& one) { one.columns[0] = 9.0F; }};
  const std::string before = read_file(file);
  {
    const ExpectedWarnings warnings;
    DocumentStore store(changed);
    const FullDisk full(before.size());
    EXPECT_FALSE(store.begin_writing({}));
    EXPECT_EQ(store.newest("a"), nullptr);
    EXPECT_EQ(warnings.count("The next start gives them the present one."), 1);
  }
  EXPECT_EQ(read_file(file), before);
  DocumentStore store(changed);
  EXPECT_TRUE(store.begin_writing({}));
  EXPECT_EQ(*store.newest("a"), stored_document("a", 4, {9.0F, 2.0F, 3.0F}));
}

TEST_F(DocumentStoreTest, KeepsDocumentsOfAnotherSchemaForRecordsOnly) {
  { DocumentStore(store_settings(folder)).put({stored_document("a", 0, one)}); }
  DocumentStore::Settings changed = store_settings(folder);
  changed.schema = "another";
  {
    const ExpectedWarnings warnings;
    DocumentStore store(changed);
    ASSERT_EQ(warnings.messages().size(), 1U);
    EXPECT_TRUE(warnings.messages()[0].ends_with(
        "Requests cannot name 1 document of another schema: put them again."));
    EXPECT_EQ(store.newest("a"), nullptr);
    EXPECT_EQ(put(store, "a", {6.0F, 5.0F, 4.0F}), 2);
  }
  DocumentStore store(changed);
  EXPECT_EQ(store.newest("a")->version, 2);
  FeedbackRecord record = list_of_versions({{"a", 1}});
  EXPECT_EQ(store.apply(record), "");
  EXPECT_EQ(record.columns, kStoredColumns);
}

/// Requests of a service that stores documents.
struct StoredRequests {
  StoredRequests() {
    limits.features = kStoredColumns;
    limits.names = {{"price", 0}, {"age", 1}, {"match", 2}};
    limits.documents = &store;
  }
  std::string rank(const std::string& docs, const std::string& more = "") {
    return refusal_text(
        [&] { parse_rank_request(R"({"query":"q","docs":[)" + docs + "]" + more + "}", limits, request); });
  }

  TemporaryFolder folder;
  DocumentStore store{store_settings(folder)};
  RequestLimits limits;
  RankRequest request;
};

/// The present schema has the numbers before, each one larger.
DocumentStore::Settings next_schema(const TemporaryFolder& folder) {
  DocumentStore::Settings settings = store_settings(folder);
  settings.before = {documents_head(settings.schema, settings.normalisation), [](StoredDocument& document) {
                       for (float& column : document.columns) column += 1.0F;
                     }};
  settings.schema = "next";
  return settings;
}

TEST_F(DocumentStoreTest, GoesOnWithAChangeThatAKillHasCut) {
  std::int64_t before = 0;
  {
    DocumentStore store(store_settings(folder));
    store.put({stored_document("a", 1, {1, 2, 3}), stored_document("b", 1, {4, 5, 6})});
    before = store.counts().log_bytes;
    const DocumentStore::Settings next = next_schema(folder);
    store.change_schema(documents_head(next.schema, next.normalisation), next.before);
  }
  const std::string whole = read_file(file);
  ExpectedWarnings torn;
  // Nothing of the change, its head, half of the next line, one document, both.
  std::size_t line = static_cast<std::size_t>(before);
  for (const std::size_t more : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    for (const std::size_t torn_bytes : {std::size_t{0}, std::size_t{20}}) {
      if (line + torn_bytes > whole.size()) continue;
      const TemporaryFolder cut;
      write_file_atomically(cut.path() / DocumentVersions::kFile, whole.substr(0, line + torn_bytes));
      DocumentStore store(next_schema(cut));
      store.begin_writing({});
      ASSERT_NE(store.newest("a"), nullptr) << more;
      EXPECT_EQ(store.newest("a")->columns, (std::vector<float>{2, 3, 4})) << more;
      EXPECT_EQ(store.newest("b")->columns, (std::vector<float>{5, 6, 7})) << more;
      EXPECT_EQ(store.newest("b")->version, 1);
    }
    line = std::min(whole.find('\n', line), whole.size() - 1) + 1;
  }
}

TEST(DocumentRequests, RankByIdsWithNumbersOfTheQuery) {
  StoredRequests service;
  EXPECT_EQ(service.rank(R"({"id":"a"})"), "422 docs[0].features: The field is missing.");
  EXPECT_EQ(service.rank(R"({"id":"a","features":{"match":1}})"), "none");  // as without a store
  service.store.put(
      parse_documents("{\"id\":\"a\",\"features\":{\"price\":2,\"age\":3}}\n\n"
                      "{\"id\":7,\"version\":9,\"features\":[4,5,6]}\n",
                      service.limits));
  EXPECT_EQ(
      service.rank(R"({"features":{"match":0.5},"id":"a"},{"id":7},{"id":"full","features":[7,8,9]})"),
      "none");
  EXPECT_EQ(service.request.values, (std::vector<float>{2, 3, 0.5F, 4, 5, 6, 7, 8, 9}));
  ASSERT_EQ(service.request.stored.size(), 3U);
  EXPECT_EQ(service.request.stored[1]->version, 9);
  EXPECT_EQ(service.request.stored[2], nullptr);
  EXPECT_EQ(
      service.rank(
          R"({"id":"x","features":{"match":1}},{"id":"a"},{"id":"y"},{"id":"z","features":{"price":1,"age":2,"match":3}})"),
      "422 docs: 2 documents are not stored: 'x' and 'y'. PUT them to /v1/docs, send all of their "
      "features, or "
      "set allow_unknown to rank them by defaults.");
  EXPECT_EQ(service.rank(R"({"id":"x","features":{"match":1}},{"id":"a"})", ",\"allow_unknown\":true"),
            "none");
  EXPECT_EQ(service.request.values, (std::vector<float>{0, 0, 1, 2, 3, 0}));
  EXPECT_EQ(document_json(*service.store.newest("7"), service.limits),
            R"({"id":7,"version":9,"features":[4,5,6]})");
}

TEST(DocumentRequests, NameWhatIsWrong) {
  StoredRequests service;
  service.limits.text_bytes = 8;
  for (const auto& [body, refusal] : std::vector<std::pair<std::string, std::string>>{
           {"", "422 body: At least one document is required."},
           {R"({"id":1,"features":[1,2]})",
            "422 documents[0].features: The document has 2 features, but the model expects 3; it ends "
            "before 'match'."},
           {R"({"id":1,"features":[1,2,1e39]})",
            "422 documents[0].features.match: The number is out of range for a 32-bit float."},
           {R"({"id":"ninebytes","features":[1,2,3]})",
            "422 documents[0].id: The value has 9 bytes; the limit is 8."},
           {R"({"id":1,"features":[1,2,3],"version":0})",
            "422 documents[0].version: A version must be an integer from 1 to 2^53."},
           {R"({"id":1})", "422 documents[0].features: The field is missing."},
           {R"({"features":[1,2,3]})", "422 documents[0].id: The field is missing."},
           {R"([{"id":1,"features":[1,2,3]}])", "422 documents[0]: Unexpected array here."},
           {"{\"id\":1,\"features\":[1,2,3]}\n{\"id\":\"1\",\"features\":[1,2,3]}",
            "422 documents[1].id: Document '1' appears twice."}})
    EXPECT_EQ(refusal_text([&, body = body] { parse_documents(body, service.limits); }), refusal) << body;
  EXPECT_TRUE(refusal_text([&] {
                parse_documents("{\"id\":1,\"features\":[1,2,3]}\n{\"id\":2,\"featur", service.limits);
              }).starts_with("400 documents[1]"));
  EXPECT_EQ(parse_documents("{\n \"id\": 1,\n \"features\": [1, 2, 3]\n}", service.limits).size(), 1U);
  EXPECT_EQ(parse_document_ids(R"({"ids":["a",7]})", service.limits), (std::vector<std::string>{"a", "7"}));
  EXPECT_EQ(refusal_text([&] { parse_document_ids("{}", service.limits); }),
            "422 ids: The field is missing.");
  EXPECT_EQ(refusal_text([&] { parse_document_ids(R"({"ids":[true]})", service.limits); }),
            "422 ids[0]: Unexpected boolean here.");
}

TEST(DocumentRequests, FollowASchema) {
  const TemporaryFolder folder;
  RequestLimits limits;
  limits.schema = std::make_shared<const FeatureSchema>(FeatureSchema::parse(
      "[[feature]]\nname = \"price\"\nlog1p = true\n[[feature]]\nname = \"colour\"\nkind = "
      "\"category\"\nvalues = [\"red\", \"blue\"]\n"
      "[[feature]]\nname = \"added\"\nkind = \"time\"\ndefault = 365\n[[feature]]\nname = \"wish\"\nkind = "
      "\"vector\"\nlength = 2\nquery = true\n"
      "[[feature]]\nname = \"taste\"\nkind = \"vector\"\nlength = 2\ninput = false\n[[feature]]\nname = "
      "\"match\"\ndot = [\"wish\", \"taste\"]\n",
      "shop.toml"));
  limits.features = std::ssize(limits.schema->columns());
  FittedNormaliser normaliser = list_scaling();
  normaliser.features = limits.features;
  DocumentStore store({folder.path(), "schema", normaliser_text(normaliser), 1'000'000});
  limits.documents = &store;
  const std::string whole =
      R"({"id":"a","features":{"price":3,"colour":"blue","added":1764158400000,"taste":[0.5,2]}})";
  store.put(parse_documents(whole, limits));
  EXPECT_EQ(
      document_json(*store.newest("a"), limits),
      R"({"id":"a","version":1,"features":{"price":3,"colour":"blue","added":1764158400000,"taste":[0.5,2]}})");
  RankRequest sent;
  RankRequest by_id;
  const std::string query = R"({"query":"q","query_features":{"wish":[1,4]},"docs":[)";
  parse_rank_request(query + whole + "]}", limits, sent);
  parse_rank_request(query + R"({"id":"a"}]})", limits, by_id);
  ASSERT_EQ(by_id.values.size(), sent.values.size());
  const double age = static_cast<double>(by_id.time - 1764158400000) / 86'400'000.0;
  for (std::size_t k = 0; k < by_id.values.size(); ++k) {
    if (limits.schema->columns()[k] == "added") {
      EXPECT_EQ(by_id.values[k], static_cast<float>(age));
    } else {
      EXPECT_EQ(by_id.values[k], sent.values[k]) << limits.schema->columns()[k];
    }
  }
  parse_rank_request(query + R"({"id":"a","features":{"colour":"red","taste":[1,0]}}]})", limits, by_id);
  EXPECT_EQ(by_id.values.back(), 1.0F);
  EXPECT_EQ(refusal_text([&] { parse_documents(R"({"id":"b","features":{"taste":[1]}})", limits); }),
            "422 documents[0].features.taste: The vector has 1 number, but the schema gives 'taste' a "
            "length of 2.");
}

}  // namespace
}  // namespace olrank
