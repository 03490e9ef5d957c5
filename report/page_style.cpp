#include "report/page_style.h"

#include "report/drawing.h"

namespace olrank {

std::string page_style() {
  return drawing_style(":root") + R"css(
:root{color-scheme:light dark;--shade:#f4f5f7;--warn:#fff4dc;--edge:#d3a63a}
@media(prefers-color-scheme:dark){:root{--shade:#1e2229;--warn:#33290f;--edge:#b88f2b}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1280px;padding:20px 16px 48px;background:var(--ground);color:var(--ink);
  font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px}
h2{font-size:1.25rem;margin:40px 0 8px;padding-top:12px;border-top:1px solid var(--grid)}
h3{font-size:1.05rem;margin:28px 0 8px}
p{margin:6px 0}
.verdict,.verdicts{font-size:1.15rem;line-height:1.4;font-weight:600;margin:6px 0 8px}
.verdicts{list-style:none;padding:0}
.verdicts li{margin:4px 0}
.verdicts .soft{font-weight:400}
.soft,figcaption,.note{color:var(--soft)}
.note,figcaption{font-size:.84rem}
.warn{background:var(--warn);border-left:4px solid var(--edge);padding:8px 12px;margin:12px 0}
.warn ul,.notes{margin:4px 0;padding-left:20px}
dl{display:grid;grid-template-columns:minmax(80px,max-content) 1fr;gap:2px 16px;margin:8px 0;font-size:.9rem}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
code{font:.88em ui-monospace,monospace}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;padding:0;margin:8px 0;font-size:.9rem}
.legend li{min-width:0}
.key{vertical-align:-1px;margin-right:6px}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,360px),1fr));gap:24px 28px}
.large{grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr))}
.answers{grid-template-columns:repeat(auto-fill,minmax(min(100%,390px),1fr))}
.large .chart,.answers .chart{max-width:620px}
figure{margin:0;min-width:0;break-inside:avoid}
.chart{display:block;width:100%;height:auto;max-width:460px}
.scroll{overflow-x:auto;max-width:100%;margin:8px 0}
.scroll:focus-visible{outline:2px solid var(--c0)}
table{border-collapse:separate;border-spacing:0;font-size:.82rem;font-variant-numeric:tabular-nums}
th,td{padding:4px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
thead th{vertical-align:bottom;white-space:normal;min-width:76px;border-bottom:1px solid var(--soft)}
th:first-child,td:first-child,td.text{text-align:left}
tr>*{background:var(--ground)}
tbody tr:nth-child(even)>*{background:var(--shade)}
tr>:first-child{position:sticky;left:0;z-index:1;border-right:1px solid var(--grid)}
tbody th{font-weight:600}
td strong{font-weight:700}
.near{display:inline-block;width:1.1em;text-align:right}
.half{color:var(--soft);font-weight:400}
details{margin:8px 0}
summary{cursor:pointer}
summary{font-weight:600;padding:4px 0}
@media(max-width:500px){tbody th{white-space:normal;min-width:112px}
  th,td{padding:4px 6px}}
@media print{html{font-size:11px}body{max-width:none;padding:0;font-size:11px}.figures,.large{grid-template-columns:1fr 1fr}
  .scroll{overflow:visible}.half{white-space:nowrap}.near{width:auto}td{vertical-align:top}table{width:100%;font-size:8px}th,td,tbody th{white-space:normal;min-width:0;
  max-width:none;padding:2px 4px}tr>:first-child{position:static}tr,figure{break-inside:avoid}
  h2,h3,summary{break-after:avoid}}
)css";
}

}  // namespace olrank
