#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "serve/status_page.h"

namespace olrank {
namespace {

constexpr std::string_view kDemoStyle = R"css(
:root{--other:#a8540a;--on:#fff}
@media(prefers-color-scheme:dark){:root{--other:#f0a35e;--on:#14171b}}
body{max-width:1120px}
h1{margin-bottom:4px}
h2{font-size:1.1rem;margin:0}
p{margin:4px 0}
.small{font-size:.84rem}
.steps{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:end;margin:14px 0 6px}
label{display:grid;color:var(--soft);font-size:.84rem}
select,button{font:inherit;color:inherit;background:var(--ground);border:1px solid var(--soft);border-radius:6px;
  padding:6px 12px;max-width:100%;min-height:38px}
select{font-size:1rem;color:var(--ink)}
button{cursor:pointer}
button:disabled{opacity:.55;cursor:default}
:focus-visible{outline:3px solid var(--line);outline-offset:2px}
.first{background:var(--line);border-color:var(--line);color:var(--on)}
.columns{display:grid;grid-template-columns:1fr 1fr;gap:20px;margin-top:14px}
.chart{display:grid;grid-template-columns:auto 1fr;gap:0 8px;margin:10px 0}
.ends{display:flex;flex-direction:column;justify-content:space-between;font-size:.84rem;color:var(--soft)}
svg{display:block;width:100%;height:96px;border:1px solid var(--grid);border-width:1px 0}
path{fill:none;stroke:var(--line);stroke-width:2.5;vector-effect:non-scaling-stroke}
#line1{stroke:var(--other);stroke-dasharray:6 3}
.figure{font-size:1.6rem;font-weight:600;font-variant-numeric:tabular-nums;color:var(--line)}
#column1 .figure{color:var(--other)}
.block{border:2px solid var(--grid);border-radius:10px;margin:8px 0;padding:6px}
#column0 .open{border:2px dashed var(--edge);background:var(--warn)}
#column0 .sure{border-color:var(--line)}
.block>p{margin:0 4px 4px}
ol{list-style:none;margin:0;padding:0;display:grid;gap:4px}
.doc{display:grid;grid-template-columns:1fr auto;gap:0 8px;width:100%;text-align:left;
  background:var(--ground);border:1px solid var(--grid);border-radius:6px;padding:4px 10px}
button.doc{border-color:var(--soft)}
.doc.clicked{background:var(--mark)}
.doc .small{grid-column:1/-1}
.hearts{color:var(--other);letter-spacing:1px}
@media(max-width:640px){.columns{grid-template-columns:1fr}}
)css";

constexpr std::string_view kDemoBody = R"html(<h1>Two rankers learn what one person likes</h1>
<p>The same person clicks in both lists. The left ranker knows which orders it is not sure of, and tries them. The right one, the same model, always shows its best guess.</p>
<noscript><p class="warn">This page needs its script.</p></noscript>
<div class="steps">
<label>Whose clicks <select id="taste"></select></label>
<label>What is ranked <select id="query"></select></label>
<button id="once">1 round</button>
<button id="many" class="first">Play 50 rounds</button>
<button id="again" disabled>Start over</button>
</div>
<p id="about"></p>
<p id="state" role="status" class="soft">Loading.</p>
<div class="chart">
<div class="ends"><span>1</span><span>0</span></div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-labelledby="chart-note"><path id="line1"></path><path id="line0"></path></svg>
</div>
<p class="soft small" id="chart-note"></p>
<main class="columns">
<section id="column0" aria-labelledby="name0">
<h2 id="name0">Tries what it is not sure of</h2>
<p><span class="figure" id="figure0">–</span> <span class="soft small" id="note0"></span></p>
<div id="list0"></div>
</section>
<section id="column1" aria-labelledby="name1">
<h2 id="name1">Shows its best guess</h2>
<p><span class="figure" id="figure1">–</span> <span class="soft small" id="note1"></span></p>
<div id="list1"></div>
</section>
</main>
<p class="soft small" id="catalogue-note"></p>
<p class="soft small">A block is a group of products whose order is still open. It ends where every product above is better than every product below with a probability of at least 90 %. Everything here runs on the API of <code>olrank serve</code>.</p>
<script type="application/json" id="catalogue">)html";

constexpr std::string_view kDemoScript = R"js(
const catalogue = JSON.parse(at('catalogue').textContent);
const sure = 0.9;
const shown = 6;
const recent = 10;  // rounds whose mean is drawn
const clickChance = [0.01, 0.05, 0.3, 0.7, 0.95];  // by grade
const leaves = 0.05;  // after each document

let bits = catalogue.seed;
function random() {  // mulberry32
  bits = (bits + 0x6d2b79f5) | 0;
  let t = Math.imul(bits ^ (bits >>> 15), 1 | bits);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

const own = catalogue.tastes.length;
const fresh = () => ({quality: [[], []], rounds: 0});
const games = [...catalogue.tastes, {}].map(() => ({...fresh(), start: 0}));
let taste = 0;
let query = 0;
let lists = [];
let liked = new Set();
let busy = false;
let stopping = false;

const docs = () => catalogue.queries[query].docs;
const byId = id => docs().find(doc => doc.id === id);
const mean = values => values.reduce((sum, one) => sum + one, 0) / values.length;
const latest = values => mean(values.slice(-recent));

function say(text, warns) {
  at('state').textContent = text;
  at('state').className = warns ? 'warn' : 'soft';
}

async function ask(column, path, body) {
  const service = 2 * (taste + games.length * games[taste].start) + column;
  const place = (service === 0 ? '' : 'surface/' + service + '/') + path;
  const answer = await fetch(place, body === undefined ? {cache: 'no-store'} :
    {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)});
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error.message);
  return value;
}

const both = work => Promise.all([0, 1].map(work));

async function rank() {
  const {name} = catalogue.queries[query];
  lists = await both(column => ask(column, 'v1/rank', {query: name, k: shown, explore: column === 0,
    docs: docs().map(({id, features}) => ({id, features}))}));
}

/// Each start of a game has rankers of its own: the latest that have learned something go on.
async function resume() {
  const game = games[taste];
  while (game.start + 1 < catalogue.starts) {
    game.start += 1;
    if ((await ask(0, 'v1/overview')).rounds > 0) continue;
    game.start -= 1;
    break;
  }
  await rank();
}

async function again() {
  Object.assign(games[taste], fresh());
  games[taste].start += 1;
  liked = new Set();
  await rank();
}

/// Sends the clicks, and waits until they are learned.
async function learn(depth) {
  await both(async column => {
    const clicks = lists[column].docs.slice(0, depth).map(doc => doc.id).filter(id => liked.has(id));
    const {round} = await ask(column, 'v1/feedback', {impression: lists[column].impression, clicks});
    while ((await ask(column, 'v1/overview')).rounds < round) await new Promise(go => setTimeout(go, 5));
  });
}

/// NDCG against the hidden taste; of a person's own clicks, the share of the list that is clicked.
function quality(list) {
  const ids = list.docs.slice(0, shown).map(doc => doc.id);
  if (taste === own) return ids.filter(id => liked.has(id)).length / ids.length;
  const gain = grades => grades.slice(0, shown).reduce((sum, grade, rank) => sum + (2 ** grade - 1) / Math.log2(rank + 2), 0);
  const best = gain(docs().map(doc => doc.grades[taste]).sort((a, b) => b - a));
  return best === 0 ? 0 : gain(ids.map(id => byId(id).grades[taste])) / best;
}

function likeAsThePerson() {
  liked = new Set(docs().filter(doc => random() < clickChance[Math.min(doc.grades[taste], 4)]).map(doc => doc.id));
  let depth = 1;
  while (depth < shown && random() >= leaves) ++depth;
  return depth;
}

async function round() {
  if (!lists.length) return rank();
  const game = games[taste];
  const depth = taste === own ? shown : likeAsThePerson();
  lists.forEach((list, column) => game.quality[column].push(quality(list)));
  await learn(depth);
  game.rounds += 1;
  await rank();
  if (taste === own) liked = new Set();
}

/// Where blocks end: the ranks before which every document is surely better than every one after.
function blocks(list) {
  const count = Math.min(shown, list.docs.length);
  const {probability} = list;
  const ends = [];
  for (let cut = 1; cut < count; ++cut) {
    const above = probability.slice(0, cut);
    if (above.every(row => row.slice(cut, count).every(value => value >= sure))) ends.push(cut);
  }
  return [...ends, count].map((end, i) => [i ? ends[i - 1] : 0, end]);
}

function figures(doc) {
  return catalogue.words.map((word, i) => [word, doc.features[i]]).filter(([, value]) => value !== 0)
    .map(([word, value]) => word.replace('#', Number(value.toPrecision(4)).toLocaleString('en')).replaceAll(' ', '\u00a0'))
    .join(' · ');
}

function entry(list, rank, end, column) {
  const doc = byId(list.docs[rank].id);
  const item = make('li');
  const button = make(taste === own ? 'button' : 'div', undefined, 'doc');
  button.append(make('strong', (rank + 1) + '. ' + doc.name));
  const side = make('span', (liked.has(doc.id) ? '✓ ' : ''), 'hearts');
  if (liked.has(doc.id)) button.classList.add('clicked');
  if (taste === own) {
    button.dataset.id = doc.id;
    button.setAttribute('aria-pressed', liked.has(doc.id));
    button.addEventListener('click', () => toggle(doc.id));
  } else {
    const grade = doc.grades[taste];
    side.append('♥'.repeat(grade));
    side.setAttribute('role', 'img');
    side.setAttribute('aria-label', 'liking ' + grade + ' of 4' + (liked.has(doc.id) ? ', wanted in the last round' : ''));
  }
  button.append(side, make('span', figures(doc), 'soft small'));
  item.append(button);
  if (column === 0 && rank + 1 < end)
    item.append(make('span', Math.round(100 * list.probability[rank][rank + 1]) + ' % sure that it is better than the next', 'soft small'));
  return item;
}

function toggle(id) {
  if (busy) return;
  liked.has(id) ? liked.delete(id) : liked.add(id);
  for (const button of document.querySelectorAll('.doc')) {
    if (button.dataset.id !== id) continue;
    button.setAttribute('aria-pressed', liked.has(id));
    button.classList.toggle('clicked', liked.has(id));
    button.querySelector('.hearts').textContent = liked.has(id) ? '✓ ' : '';
  }
}

function showList(column) {
  const list = lists[column];
  const parts = column === 0 ? blocks(list) : [[0, Math.min(shown, list.docs.length)]];
  at('list' + column).replaceChildren(...parts.map(([begin, end]) => {
    const open = end - begin > 1;
    const block = make('div', undefined, 'block ' + (open ? 'open' : 'sure'));
    if (column === 0) block.append(make('p', open ? 'Order still open' : 'Certain place', 'soft small'));
    const items = make('ol');
    for (let rank = begin; rank < end; ++rank) items.append(entry(list, rank, end, column));
    block.append(items);
    return block;
  }));
}

function show() {
  const game = games[taste];
  const isOwn = taste === own;
  [0, 1].forEach(column => {
    const values = game.quality[column];
    at('figure' + column).textContent = values.length ? latest(values).toFixed(2) : '–';
    at('note' + column).textContent = isOwn ? 'of its lists clicked' : 'NDCG: 1 is the best list there is';
    at('line' + column).setAttribute('d', values.map((_, i) => (i ? 'L' : 'M') +
      (100 * i / Math.max(values.length - 1, 1)).toFixed(2) + ' ' +
      (100 - 100 * mean(values.slice(Math.max(0, i + 1 - recent), i + 1))).toFixed(2)).join(''));
    showList(column);
  });
  at('chart-note').textContent = (isOwn ? 'Share of the shown list that you clicked' : 'NDCG of the shown lists against the hidden taste') +
    ', mean of ' + recent + ' rounds, by rounds: ' + game.rounds + ' so far. Solid: the left ranker. Dashed: the right one.';
  at('about').textContent = isOwn ? 'Click what you like, in either list, then ask for the next lists.' :
    catalogue.tastes[taste].name + ' ' + catalogue.tastes[taste].about + ' The hearts show it to you; the rankers see only clicks.';
  at('once').textContent = isOwn ? 'Next lists' : '1 round';
  at('once').className = isOwn ? 'first' : '';
  at('many').hidden = isOwn;
}

function summary() {
  const {rounds, quality: [left, right]} = games[taste];
  if (!rounds && !lists[0].round) return 'The first lists are in chance order: nothing is learned yet.';
  if (!rounds) return 'The rankers have learned ' + lists[0].round + (lists[0].round === 1 ? ' round before.' : ' rounds before.');
  const parts = blocks(lists[0]).length;
  return rounds + (rounds === 1 ? ' round' : ' rounds') + ' learned. Left ' + latest(left).toFixed(2) + ', right ' + latest(right).toFixed(2) +
    '; the left list has ' + parts + (parts === 1 ? ' block.' : ' blocks.') +
    (games[taste].start + 1 < catalogue.starts ? '' : ' To start over once more, start olrank demo again.');
}

/// Everything that talks to the service: one at a time, with its error told.
async function run(work) {
  if (busy) return;
  busy = true;
  for (const id of ['taste', 'query', 'again']) at(id).disabled = true;
  try {
    await work();
    show();
    say(summary());
  } catch (error) {
    say('No answer: ' + error.message + ' Is olrank demo still running?', true);
  }
  busy = false;
  for (const id of ['taste', 'query']) at(id).disabled = false;
  at('again').disabled = !lists.length || lists[0].round === 0 || games[taste].start + 1 >= catalogue.starts;
}

async function many() {
  stopping = false;
  at('many').textContent = 'Stop';
  for (let i = 0; i < 50 && !stopping; ++i) {
    await round();
    show();
    await new Promise(go => setTimeout(go, 0));
  }
}

at('once').addEventListener('click', () => run(round));
at('many').addEventListener('click', async () => {
  if (at('many').textContent === 'Stop') {
    stopping = true;
    return;
  }
  await run(many);
  at('many').textContent = 'Play 50 rounds';
});
at('again').addEventListener('click', async () => {
  await run(again);
  at(taste === own ? 'once' : 'many').focus();
});
for (const [id, choose] of [['taste', value => { taste = value; }], ['query', value => { query = value; }]]) {
  at(id).addEventListener('change', async () => {
    choose(Number(at(id).value));
    liked = new Set();
    lists = [];
    await run(id === 'taste' ? resume : rank);
    at(id).focus();
  });
}
const option = (text, value) => {
  const node = make('option', text);
  node.value = value;
  return node;
};
at('taste').append(...catalogue.tastes.map((one, i) => option(one.name, i)), option('Your own', own));
at('query').append(...catalogue.queries.map((one, i) => option(one.name, i)));
at('catalogue-note').textContent = catalogue.about;
run(resume);
)js";

constexpr std::string_view kDemoPolicy =
    "default-src 'none'; "
    "script-src 'sha256-fJ4FbEwnY0qklet5KFqT9YUJ1IjXwRPb60EVki75/rE='; "
    "style-src 'sha256-GEr80LiztmlsQjfjdT8mdDloJAMUSnB4U7ypSYncy7Q='; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

using nlohmann::json;

constexpr std::size_t kProducts = 40;  // of a category
constexpr std::array<std::string_view, 8> kBrands = {"Alder", "Birch", "Cedar", "Hazel",
                                                     "Larch", "Maple", "Rowan", "Willow"};

struct Category {
  std::string_view name;
  double price;   // the median, in euros
  double weight;  // the median, in grams
  std::array<std::string_view, 5> models;
};
constexpr std::array<Category, 3> kCategories = {
    Category{"Running shoes", 95, 270, {"Glide", "Pacer", "Ridge", "Sprint", "Trail"}},
    Category{"Laptops", 900, 1500, {"Air", "Book", "Note", "Pro", "Studio"}},
    Category{"Coffee machines", 240, 5200, {"Barista", "Crema", "Drip", "Lungo", "Moka"}}};

struct Product {
  std::size_t brand = 0;
  std::array<double, kDemoFeatures> values{};  // price, rating, reviews, delivery, weight, discount
};

/// Uniform in [0, 1), the same with every standard library.
double draw(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11U) * 0x1p-53;
}
/// Roughly normal.
double draw_normal(std::mt19937_64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += draw(random);
  return sum;
}

Product draw_product(const Category& category, std::size_t brand, std::mt19937_64& random) {
  Product product;
  product.brand = brand;
  product.values = {std::round(category.price * std::exp(0.45 * draw_normal(random))),
                    std::clamp(std::round(39 + 6 * draw_normal(random)) / 10, 2.0, 5.0),
                    std::floor(std::exp(7 * draw(random))),
                    std::floor(1 + 8 * draw(random)),
                    std::round(category.weight * std::exp(0.2 * draw_normal(random)) / 10) * 10,
                    draw(random) < 0.4 ? 5 * std::floor(1 + 8 * draw(random)) : 0};
  return product;
}

/// Each product's place among all by one value, from 0 to 1.
std::vector<double> places(const std::vector<Product>& products, std::size_t value) {
  std::vector<double> result;
  for (const Product& product : products) {
    const auto below = std::count_if(products.begin(), products.end(), [&](const Product& other) {
      return other.values[value] < product.values[value];
    });
    result.push_back(static_cast<double>(below) / static_cast<double>(products.size() - 1));
  }
  return result;
}

/// The two best products have grade 4, the next two 3, the next two 2, the next four 1.
std::vector<int> grades_of(const std::vector<double>& liking) {
  constexpr std::array<int, 10> kGrades = {4, 4, 3, 3, 2, 2, 1, 1, 1, 1};
  std::vector<std::size_t> order(liking.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return liking[a] > liking[b]; });
  std::vector<int> grades(liking.size(), 0);
  for (std::size_t place = 0; place < kGrades.size(); ++place) grades[order[place]] = kGrades[place];
  return grades;
}

json category_json(const Category& category, std::mt19937_64& random) {
  std::vector<Product> products;
  for (std::size_t i = 0; i < kProducts; ++i)
    products.push_back(draw_product(category, i % kBrands.size(), random));
  const std::vector<double> price = places(products, 0);
  const std::vector<double> rating = places(products, 1);
  std::array<std::vector<double>, 3> liking;
  for (std::size_t i = 0; i < kProducts; ++i) {
    const double distance = (price[i] - 0.6) / 0.12;
    liking[0].push_back(std::exp(-distance * distance) + 0.1 * rating[i]);
    liking[1].push_back(0.3 * rating[i] - price[i]);
    liking[2].push_back((products[i].brand == 2 || products[i].brand == 6 ? 1.0 : 0.0) + 0.3 * rating[i]);
  }
  std::array<std::vector<int>, 3> grades;
  std::transform(liking.begin(), liking.end(), grades.begin(), grades_of);
  json docs = json::array();
  for (std::size_t i = 0; i < kProducts; ++i) {
    docs.push_back(
        {{"id", fmt::format("{} {}", category.name, i)},
         {"name", fmt::format("{} {}", kBrands[products[i].brand], category.models[i / kBrands.size()])},
         {"features", products[i].values},
         {"grades", {grades[0][i], grades[1][i], grades[2][i]}}});
  }
  return {{"name", category.name}, {"docs", docs}};
}

/// Generated products of three categories with their words, and how each of the simulated people grades
/// them, from 0 to 4.
json catalogue_json(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  json queries = json::array();
  for (const Category& category : kCategories) queries.push_back(category_json(category, random));
  return {
      {"about", "120 invented products. A ranker is told their figures, but not their names."},
      {"words", {"€ #", "★ #", "reviews: #", "delivery: # d", "# g", "−# %"}},
      {"queries", queries},
      {"tastes",
       {{{"name", "Ann"}, {"about", "wants neither cheap nor dear: a price a little above the middle."}},
        {{"name", "Ben"}, {"about", "likes it cheap, and well rated where the prices are close."}},
        {{"name", "Cleo"},
         {"about", "is a fan of Cedar and Rowan. No figure says so: only trying a product tells."}}}}};
}

/// JSON that does not end the element that holds it.
std::string inside_an_element(const json& json) {
  std::string text;
  for (const char c : json.dump()) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

ServicePage demo_page(std::uint64_t seed) {
  json catalogue = catalogue_json(seed);
  catalogue["seed"] = static_cast<std::uint32_t>(seed);
  catalogue["starts"] = kDemoStarts;
  return {fmt::format("{}{}{}</script>\n{}", page_head("olrank demo", kDemoStyle), kDemoBody,
                      inside_an_element(catalogue), page_script(kDemoScript)),
          kDemoPolicy};
}

}  // namespace olrank
