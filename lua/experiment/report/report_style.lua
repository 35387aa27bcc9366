-- How a report looks, and the few lines that sort its table: nothing in it
-- asks the network for anything.
local escape = require("lumat.svg").escape
local next, tostring = next, tostring
local format, sort = string.format, table.sort
local style = {}

-- A part of the page.
function style.section(title, body, class)
    return format("<section%s>\n<h2>%s</h2>\n%s\n</section>\n",
        class and ' class="' .. class .. '"' or "", escape(title), body)
end

-- The keys of a table in the order in which a page lists them.
function style.sorted_names(t)
    local names = {}
    for name in next, t do names[#names + 1] = name end
    sort(names, function(a, b) return tostring(a) < tostring(b) end)
    return names
end

style.css = [[
:root{--ink:#1d2129;--soft:#5b6370;--line:#dfe3e8;--paper:#fff;--back:#f5f6f8;
--bad:#b3261e;--badback:#fdecea;--link:#2667b8}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7ec;--soft:#a3abb8;
--line:#2e343d;--paper:#15181e;--back:#0e1116;--bad:#ff8a80;
--badback:#38191a;--link:#7db2f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:1200px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 12px}
.soft{color:var(--soft)}
p{margin:0 0 12px}.wide+p{margin:12px 0 0}section>:last-child{margin-bottom:0}
section{background:var(--paper);border:1px solid var(--line);
border-radius:10px;padding:16px;margin:16px 0}
.facts{display:grid;gap:4px 24px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));margin:0}
.facts div{display:flex;gap:12px;min-width:0}
.facts dt{color:var(--soft);flex:0 0 7em;overflow-wrap:anywhere}
.facts dd{margin:0;overflow-wrap:anywhere;min-width:0}
h3{font-size:15px;margin:16px 0 6px}h3:first-of-type{margin-top:0}
.plots{display:grid;gap:16px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}
.plots figure{margin:0;overflow-x:auto}
.plots svg{display:block;width:100%;min-width:400px;height:auto}
.wide{overflow:auto;max-height:75vh}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;
font-size:14px;width:100%}
th,td{padding:4px 12px;text-align:right;white-space:nowrap;
border-bottom:1px solid var(--line)}
thead th{position:sticky;top:0;background:var(--paper);color:var(--soft);
font-weight:600;z-index:1;box-shadow:0 1px 0 var(--line);border:0}
th button{all:unset;cursor:pointer;color:inherit}
th button:hover{color:var(--ink)}
th button:focus-visible{outline:2px solid var(--link);outline-offset:2px}
th button::after{content:" \2195";opacity:.35}
th[aria-sort=ascending] button::after{content:" \2191";opacity:1}
th[aria-sort=descending] button::after{content:" \2193";opacity:1}
tbody tr:hover{background:var(--back)}
.f{color:var(--bad)}
.failed{border-left:4px solid var(--bad)}
.failed li{margin:0 0 8px;overflow-wrap:anywhere}
.failed ul{margin:0;padding-left:20px}
.failed code{color:var(--bad);white-space:pre-wrap}
code,pre{font:13px/1.5 ui-monospace,'DejaVu Sans Mono',Menlo,monospace}
pre{margin:0;overflow:auto;max-height:80vh;counter-reset:n;tab-size:4}
pre span{display:block;min-height:1.5em;padding-left:4.5em;position:relative}
pre span::before{counter-increment:n;content:counter(n);position:absolute;
left:0;width:3.5em;text-align:right;color:var(--soft);user-select:none}
@media print{body{background:#fff}.wide,pre{max-height:none;overflow:visible}
section{break-inside:avoid-page;border:0}}
]]

-- Numbers by size, the rest by name, what is missing last.
style.script = [[
(function(){
var t=document.getElementById("points");if(!t)return;
var heads=t.tHead.rows[0].cells,body=t.tBodies[0];
function value(r,i){var c=r.cells[i];
return c?c.textContent.replace(/[~\u2009]/g,"").trim():""}
function key(s){var n=parseFloat(s);
return s!==""&&isFinite(s.replace(/ ?%$/,""))?n:null}
function sort(i){var down=heads[i].getAttribute("aria-sort")==="ascending",
rows=[].map.call(body.rows,function(r,k){var s=value(r,i);
return{r:r,s:s,n:key(s),k:k}});
rows.sort(function(a,b){
if(a.n!==null&&b.n!==null)return(down?b.n-a.n:a.n-b.n)||a.k-b.k;
if((a.n===null)!==(b.n===null))return a.n===null?1:-1;
return(down?-1:1)*a.s.localeCompare(b.s)||a.k-b.k});
var f=document.createDocumentFragment();
rows.forEach(function(x){f.appendChild(x.r)});body.appendChild(f);
[].forEach.call(heads,function(h){h.removeAttribute("aria-sort")});
heads[i].setAttribute("aria-sort",down?"descending":"ascending")}
[].forEach.call(heads,function(h,i){var b=document.createElement("button");
b.textContent=h.textContent;h.textContent="";h.appendChild(b);
b.addEventListener("click",function(){sort(i)})});
})();
]]

return style
