#include "serve/status_page.h"

#include <fmt/format.h>

namespace olrank {
namespace {

constexpr std::string_view kStatusStyle = R"css(
body{max-width:960px}
h2{font-size:1.1rem;margin:28px 0 8px;padding-top:10px;border-top:1px solid var(--grid)}
p{margin:6px 0}
form{margin:16px 0}
input,button{font:inherit;color:inherit;background:var(--ground);border:1px solid var(--soft);border-radius:4px;
  padding:4px 10px;max-width:100%}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(140px,1fr));gap:10px;margin:16px 0}
dl div{background:var(--shade);border-radius:6px;padding:8px 12px;display:flex;flex-direction:column-reverse;
  justify-content:flex-end}
dt{color:var(--soft);font-size:.84rem}
dd{margin:0;font-size:1.3rem;font-variant-numeric:tabular-nums}
.ends{display:flex;justify-content:space-between;color:var(--soft);font-size:.84rem}
svg{display:block;width:100%;height:120px;border:1px solid var(--grid);border-width:1px 0}
path{fill:none;stroke:var(--line);stroke-width:2;vector-effect:non-scaling-stroke}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px 4px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
th:last-child,td:last-child{padding-right:0}
th{font-weight:400;color:var(--soft);white-space:normal;overflow-wrap:normal;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}
ol{list-style:none;margin:0;padding:0}
ol>li{padding:8px 0;border-bottom:1px solid var(--grid)}
.docs{display:flex;flex-wrap:wrap;gap:4px 6px;margin-top:4px}
.docs span{background:var(--shade);border-radius:4px;padding:0 8px}
.docs .clicked,.docs .up{background:var(--mark)}
.c0{--own:#1f6fb2}.c1{--own:#c2611a}.c2{--own:#2e8b57}.c3{--own:#8a5bb5}
.curve{stroke:var(--own)}
.band{fill:var(--own);stroke:none;opacity:.2}
.key{margin-right:14px}
.key::before{content:'';display:inline-block;width:18px;border-top:3px solid var(--own);margin-right:6px;vertical-align:middle}
progress{width:min(220px,20vw);accent-color:var(--line)}
#features td:nth-child(n+3){text-align:left}
)css";

constexpr std::string_view kStatusBody = R"html(<h1>olrank service</h1>
<p class="soft" id="about"></p>
<p id="state" role="status">Loading.</p>
<noscript><p class="warn">This page needs its script. <code>GET /v1/overview</code> has the same figures.</p></noscript>
<form id="entry" hidden>
<p><label>Token <input id="token" type="password" autocomplete="off" required></label> <button>Show</button></p>
<p class="soft">The page sends it to this service only, and forgets it when it is closed or reloaded.</p>
</form>
<main id="data" hidden>
<dl id="cards"></dl>
<div id="arms" hidden>
<h2>Arms</h2>
<p id="arms-note"></p>
<div class="scroll"><table>
<thead><tr><th scope="col">arm</th><th scope="col">share now</th><th scope="col">lists with feedback</th><th scope="col">clicks a list</th><th scope="col">reward a list</th><th scope="col" id="arms-versus"></th><th scope="col">at least</th><th scope="col">at most</th></tr></thead>
<tbody id="arm-rows"></tbody>
</table></div>
<p class="soft">Bounds of 95 % that hold at all times together, so you may look as often as you like. They count the lists since the shares changed last.</p>
<ol id="changes"></ol>
</div>
<div id="clicks" hidden>
<h2>Clicks a list</h2>
<p class="soft">Means of equally many lists since the service started, with bounds of 95 %.</p>
<div class="ends"><span id="clicks-top"></span><span id="clicks-keys"></span></div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="Clicks a list over time" id="clicks-curves"></svg>
<div class="ends"><span>0 clicks</span><span id="clicks-end"></span></div>
</div>
<div id="features" hidden>
<h2>Features that count</h2>
<p class="soft">How far each feature moves the scores within the latest lists, by the model without its memory of documents.</p>
<div class="scroll"><table>
<thead><tr><th scope="col">feature</th><th scope="col">share</th><th scope="col"></th><th scope="col">larger is</th></tr></thead>
<tbody id="feature-rows"></tbody>
</table></div>
</div>
<div id="queries" hidden>
<h2>Most asked queries</h2>
<p class="soft" id="queries-note"></p>
<ol id="query-rows"></ol>
</div>
<h2>Certain share</h2>
<p class="soft" id="chart-note"></p>
<div id="chart" hidden>
<div class="ends"><span>100 %</span></div>
<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-labelledby="chart-note"><path id="curve"></path></svg>
<div class="ends"><span>0 %, first list</span><span id="chart-end"></span></div>
</div>
<h2>Latency</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">path</th><th scope="col">requests</th><th scope="col">errors</th><th scope="col">median, ms</th><th scope="col">99 %, ms</th></tr></thead>
<tbody id="latencies"></tbody>
</table></div>
<p class="soft">Since the service started, from the reading of a request to its answer: the time that half, and 99 %, of the requests took at most. Interpolated in the buckets of <code>/metrics</code>.</p>
<h2>Recent lists</h2>
<ol id="lists"></ol>
</main>
)html";

constexpr std::string_view kStatusScript = R"js(
const count = number => number.toLocaleString('en');
const share = value => value === null ? '–' : (100 * value).toFixed(1) + ' %';
const milliseconds = seconds => {  // of a histogram, whose first bucket ends at 0.5 ms
  const ms = 1000 * seconds;
  return ms <= 0.5 ? '< 0.5' : ms < 10 ? ms.toFixed(1) : count(Math.round(ms));
};
const age = seconds => {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const [size, unit] = units.find(([size]) => seconds >= size) || units[3];
  return Math.floor(seconds / size) + ' ' + unit;
};

let token = '';
let answered = null;

function say(text, warns) {
  at('state').textContent = text;
  at('state').className = warns ? 'warn' : '';
}

function showState(now) {
  const waiting = now.log_rounds - now.rounds;
  if (now.failure !== null) return say(now.failure, true);
  if (now.log_away) return say('The shared log cannot be reached: feedback is rejected; rankings do not need the log.', true);
  if (now.disk_rejects_feedback) return say('The disk is full or failing: no more feedback is logged; rankings do not need it.', true);
  say(waiting > 0 ? 'Learning: ' + count(waiting) + ' rounds of feedback to go.' : 'All feedback is learned.');
}

function showCards(now) {
  const rank = now.latencies.filter(one => one.path === '/v1/rank' || one.path === '/v1/rerank')
    .sort((a, b) => b.requests - a.requests)[0];
  const cards = [
    ['rounds learned', count(now.rounds)],
    ['lists shown, since the start', count(now.impressions)],
    ['lists awaiting feedback', count(now.open_impressions)],
    ['certain share, since the start', share(now.certain_share)],
    ['clicks a list, since the start', now.clicks.lists ? (now.clicks.clicks / now.clicks.lists).toFixed(2) : '–'],
    ['lists without a click', now.clicks.lists ? share(now.clicks.without / now.clicks.lists) : '–'],
    ['median ranking', rank ? milliseconds(rank.median) + ' ms' : '–'],
  ];
  if (now.pairs > 0) cards.splice(1, 0, ['pairs learned', count(now.pairs)]);
  if (now.fairness !== null) {
    const fair = now.fairness;
    cards.push(['unfairness; fair up to ±' + Number(fair.epsilon.toPrecision(3)), fair.unfairness.toFixed(2)],
      ['fair lists', share(fair.fair_share)],
      ...Object.entries(fair.exposure).map(([group, exposure]) => ['exposure of ' + group, count(Math.round(exposure))]));
  }
  if (now.skipped_rounds > 0) cards.push(['rounds skipped', count(now.skipped_rounds)]);
  at('cards').replaceChildren(...cards.map(([name, value]) => {
    const card = make('div');
    card.append(make('dt', name), make('dd', value));
    return card;
  }));
}

const percent = value => Number(value.toPrecision(3)) + ' %';
const signed = value => (value < 0 ? '−' : '+') + Math.abs(value).toFixed(3);
const verdict = bounds => !bounds ? 'not enough lists yet' : bounds.low > 0 ? 'better' : bounds.high < 0 ? 'worse' : 'no difference shown yet';

function showArms(now) {
  at('arms').hidden = now.arms === null;
  if (now.arms === null) return;
  const {arms, baseline, interleaved, changes} = now.arms;
  const drafted = interleaved.wins[0] + interleaved.wins[1] + interleaved.ties;
  const others = arms.filter(one => one.name !== baseline);
  at('arms-note').textContent = drafted ?
    arms[0].name + ' won ' + count(interleaved.wins[0]) + ' and ' + arms[1].name + ' ' + count(interleaved.wins[1]) + ' of ' + count(drafted) +
      ' interleaved lists: ' + arms[0].name + ' is ' + verdict(interleaved.preference) + '.' :
    others.map(one => one.name + ' against ' + baseline + ': ' + verdict(one.difference)).join('; ') + '.';
  at('arms-versus').textContent = 'reward a list more than ' + baseline;
  at('arm-rows').replaceChildren(...arms.map(one => {
    const row = make('tr');
    const bounds = one.difference;
    for (const text of [one.name, percent(one.share), count(one.lists), one.lists ? (one.clicks / one.lists).toFixed(3) : '–', one.lists ? (one.reward / one.lists).toFixed(3) : '–',
      ...(bounds ? [bounds.value, bounds.low, bounds.high].map(signed) : ['–', '–', '–'])])
      row.append(make('td', text));
    return row;
  }));
  at('changes').replaceChildren(...changes.slice().reverse().map(one =>
    make('li', 'Round ' + count(one.round) + ': the learner\'s share went from ' + percent(one.from) + ' to ' + percent(one.to) + ', as ' + one.reason + '.')));
}

function showClicks(now) {
  const periods = now.clicks_history;
  at('clicks').hidden = periods.length < 2;
  if (periods.length < 2) return;
  const names = [...new Set(periods.flatMap(one => Object.keys(one.arms)))].sort();
  const top = Math.max(...periods.flatMap(one => Object.values(one.arms).map(arm => arm.high)), 0.01);
  const [first, last] = [periods[0].lists, periods[periods.length - 1].lists];
  const point = (lists, clicks) => (100 * (lists - first) / (last - first)).toFixed(2) + ' ' + (100 - 100 * Math.max(clicks, 0) / top).toFixed(2);
  at('clicks-top').textContent = top.toFixed(2) + ' clicks';
  at('clicks-end').textContent = 'list ' + count(last) + ' with feedback';
  at('clicks-keys').replaceChildren(...names.map((name, i) => make('span', name || (names.length > 1 ? 'before there were arms' : ''), name || names.length > 1 ? 'key c' + i % 4 : '')));
  at('clicks-curves').replaceChildren(...names.flatMap((name, i) => {
    const known = periods.filter(one => one.arms[name]);
    const line = bound => known.map(one => point(one.lists, one.arms[name][bound]));
    return [['band', 'M' + line('high').concat(line('low').reverse()).join('L') + 'Z'], ['curve', 'M' + line('clicks').join('L')]].map(([kind, d]) => {
      const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      path.setAttribute('class', kind + ' c' + i % 4);
      path.setAttribute('d', d);
      return path;
    });
  }));
}

function showQueries(now) {
  at('queries').hidden = now.queries.length === 0;
  at('queries-note').textContent = now.queries.some(one => one.own !== null) ?
    'The list by score, without exploration, beside your own order: ↑ and ↓ are ranks that a document goes up or down, and new ones are not among your first ten.' :
    'The list by score, without exploration.';
  at('query-rows').replaceChildren(...now.queries.map(one => {
    const item = make('li');
    const same = one.own !== null && one.best.every((id, rank) => id === one.own[rank]);
    item.append(make('strong', one.query), make('span', ' · ' + count(one.lists) + ' lists' + (same ? ' · as your own order' : ''), 'soft'));
    const docs = make('div', undefined, 'docs');
    one.best.forEach((id, rank) => {
      const before = one.own === null ? rank : one.own.indexOf(id);
      const up = before < 0 || before > rank;
      docs.append(make('span', id + (before < 0 ? ' new' : before === rank ? '' : up ? ' ↑' + (before - rank) : ' ↓' + (rank - before)), up ? 'up' : ''));
    });
    item.append(docs);
    return item;
  }));
}

let featuresDue = 0;

async function showFeatures(headers) {
  if (Date.now() < featuresDue) return;
  featuresDue = Date.now() + 20000;
  const answer = await fetch('v1/features', {headers, cache: 'no-store', signal: AbortSignal.timeout(10000)});
  if (!answer.ok) return;
  const features = (await answer.json()).features;
  at('features').hidden = features.length === 0;
  at('feature-rows').replaceChildren(...features.slice(0, 12).map(one => {
    const row = make('tr');
    const bar = make('progress');
    bar.max = features[0].share;
    bar.value = one.share;
    const cell = make('td');
    cell.append(bar);
    row.append(make('td', one.name), make('td', share(one.share)), cell,
      make('td', one.direction > 0.5 ? 'better' : one.direction < -0.5 ? 'worse' : 'either'));
    return row;
  }));
}

function showChart(now) {
  const points = now.history.filter(one => one.certain_share !== null);
  const drawn = points.length > 1;
  at('chart').hidden = !drawn;
  if (!drawn) {
    at('chart-note').textContent = now.impressions > 1 && !points.length ?
      'This kind of ranker has no certain orders.' : 'It is drawn from the second list on.';
    return;
  }
  const [first, last] = [points[0].lists, points[points.length - 1].lists];
  at('chart-note').textContent = 'Share of the pairs of shown documents whose order is certain, by lists since the service ' +
    'started. The latest point: ' + share(points[points.length - 1].certain_share) + '.';
  at('curve').setAttribute('d', points.map((one, i) =>
    (i ? 'L' : 'M') + (100 * (one.lists - first) / (last - first)).toFixed(2) + ' ' +
    (100 - 100 * one.certain_share).toFixed(2)).join(''));
  at('chart-end').textContent = 'list ' + count(last);
}

function showLatencies(now) {
  at('latencies').replaceChildren(...now.latencies.map(one => {
    const row = make('tr');
    for (const text of [one.path, count(one.requests), count(one.errors), milliseconds(one.median), milliseconds(one.p99)])
      row.append(make('td', text));
    return row;
  }));
}

function showLists(now) {
  at('lists').replaceChildren(...now.lists.map(list => {
    const item = make('li');
    const clicks = list.clicks === null ? 'awaiting feedback' :
      list.clicks.includes(1) ? list.clicks.reduce((sum, one) => sum + one) + ' clicked' : 'no click';
    const orders = list.certain_share === null ? '' : ' · certain share ' + share(list.certain_share);
    item.append(make('strong', list.query), make('span', ' · ' + age(list.seconds_ago) + ' ago · ' + clicks + orders, 'soft'));
    const docs = make('div', undefined, 'docs');
    list.docs.forEach((id, rank) => {
      const clicked = list.clicks !== null && list.clicks[rank] === 1;
      docs.append(make('span', (clicked ? '✓ ' : '') + id, clicked ? 'clicked' : ''));
    });
    if (list.shown > list.docs.length) docs.append(make('span', 'and ' + count(list.shown - list.docs.length) + ' more', 'soft'));
    item.append(docs);
    return item;
  }));
  if (!now.lists.length) at('lists').append(make('li', 'None yet.', 'soft'));
}

function show(now) {
  at('about').textContent = now.ranker + ' · ' + count(now.features) + ' features · up ' + age(now.uptime_seconds) +
    ' · olrank ' + now.version;
  showState(now);
  showCards(now);
  showArms(now);
  showClicks(now);
  showQueries(now);
  showChart(now);
  showLatencies(now);
  showLists(now);
  at('entry').hidden = true;
  at('data').hidden = false;
}

function askForToken() {
  at('data').hidden = true;
  at('entry').hidden = false;
  at('token').focus();
  say(token ? 'The service does not accept this token.' : 'This service requires its token.', Boolean(token));
  token = '';
}

async function refresh() {
  try {
    const headers = token ? {Authorization: 'Bearer ' + token} : {};
    const answer = await fetch('v1/overview', {headers, cache: 'no-store', signal: AbortSignal.timeout(10000)});
    if (answer.status === 401) return askForToken();
    const now = await answer.json();
    if (!answer.ok) throw new Error(now.error.message);
    answered = new Date();
    show(now);
    await showFeatures(headers).catch(() => {});
  } catch (error) {
    say(answered ? 'No answer since ' + answered.toLocaleTimeString() + '; the figures are those of then.' :
      'No answer: ' + error.message, true);
  }
  setTimeout(next, 2000);
}

function next() {
  if (document.hidden) {
    document.addEventListener('visibilitychange', next, {once: true});
  } else {
    refresh();
  }
}

at('entry').addEventListener('submit', event => {
  event.preventDefault();
  token = at('token').value.trim();
  at('token').value = '';
  refresh();
});
refresh();
)js";

}  // namespace

const std::string& status_page() {
  static const std::string page = fmt::format("{}{}{}", page_head("olrank service", kStatusStyle),
                                              kStatusBody, page_script(kStatusScript));
  return page;
}

const std::string_view kStatusPagePolicy =
    "default-src 'none'; "
    "script-src 'sha256-fa/tnfx2QamUc7buubR0qloYOYhC4BsgTZyXrOzlAlg='; "
    "style-src 'sha256-bi+fzotQ50s5Npk0qRgzsQyQx9Y0eGjGyaEAkbcyY8o='; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

namespace {

constexpr std::string_view kBeforeTitle = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M2 3h12M2 8h8M2 13h5' stroke='%231f6fb2' stroke-width='3'/%3E%3C/svg%3E">
)html";

constexpr std::string_view kStyleOfPages = R"css(
:root{color-scheme:light dark;--ground:#fff;--ink:#1c2026;--soft:#5a626e;--grid:#dde0e5;--shade:#f4f5f7;
  --line:#1f6fb2;--warn:#fff4dc;--edge:#d3a63a;--mark:#d9eadb}
@media(prefers-color-scheme:dark){:root{--ground:#14171b;--ink:#e6e8eb;--soft:#a0a8b4;--grid:#353b44;
  --shade:#1e2229;--line:#6db3f2;--warn:#33290f;--edge:#b88f2b;--mark:#24442a}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0 auto;padding:20px 16px 48px;background:var(--ground);color:var(--ink);
  font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0}
.soft{color:var(--soft)}
.warn{background:var(--warn);border-left:4px solid var(--edge);padding:8px 12px})css";

constexpr std::string_view kScriptOfPages = R"js(
'use strict';
const at = id => document.getElementById(id);
const make = (tag, text, name) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
};)js";

}  // namespace

std::string page_head(std::string_view title, std::string_view style) {
  return fmt::format("{}<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n", kBeforeTitle, title,
                     kStyleOfPages, style);
}

std::string page_script(std::string_view script) {
  return fmt::format("<script>{}{}</script>\n</body>\n</html>\n", kScriptOfPages, script);
}

}  // namespace olrank
