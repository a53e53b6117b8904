// The page's state is its location hash: f facets that all rows have, e facets of which each has one, by "id" or
// "question": only those that rows of each of e share; q search, id, s sort, item the row that is open.
const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
let searching = 0;
let searched = { query: "", found: null };

/** Links of the page itself; those of an open item come and go. */
const links = () => [...document.querySelectorAll("header a, nav a, main a")];

/** The history keeps with each place that was left the number of the link that led away, -1 for none. */
const leave = (link) => history.replaceState(links().indexOf(link), "");

function go(next) {
  leave(null);
  const given = Object.entries(next).filter(([, value]) => value !== "" && value !== undefined);
  location.hash = new URLSearchParams(given).toString().replaceAll("%2C", ",") || "all"; // empty would scroll to the top
}

const numbersOf = (text) => (text || "").split(",").filter(Boolean).map(Number).filter((f) => f in data.head.facets);
const facetsOf = (now) => numbersOf(now.f);
const openItem = (row) => go({ ...state(), item: row });
const rowsOfId = (id) => data.ids.flatMap((other, row) => other === id ? [row] : []);
const runOf = (row) => data.columns[0][row];

function filtered(now, found) {
  const facets = facetsOf(now);
  const either = numbersOf(now.e);
  const rows = [];
  for (let row = 0; row < data.ids.length; row++) {
    const has = data.facets[row];
    if ((found && !found.has(row)) || (now.id !== undefined && data.ids[row] !== now.id)) continue;
    if (facets.every((f) => has.includes(f)) && (!either.length || either.some((f) => has.includes(f)))) rows.push(row);
  }
  return either.length && now.by ? shared(rows, either, keysOf(now.by)) : rows;
}

const keysOf = (by) => by === "question" ? data.questions : data.ids;

/** The rows whose key has rows of each facet. */
function shared(rows, either, keys) {
  const met = either.map((f) => new Set(rows.filter((row) => data.facets[row].includes(f)).map((row) => keys[row])));
  return rows.filter((row) => met.every((of) => of.has(keys[row])));
}

/** How many verdicts the rows hold of the one thing that is filtered by; null where that says nothing. */
function verdictsOf(rows, facets) {
  const counting = facets.filter((f) => !["column", "run"].includes(data.head.facets[f].kind));
  if (counting.length !== 1) return null;
  return rows.reduce((sum, row) => sum + (data.counts[row] ? data.counts[row][data.facets[row].indexOf(counting[0])] : 1), 0);
}

/** What the column that rows are sorted by comes to, where it can be added up. */
function sumOf(rows) {
  const column = table.sort ? table.sort.column - 1 : -1;
  if (!data.head.summed.includes(column)) return "";
  const sum = rows.reduce((all, row) => all + (data.columns[column][row] || 0), 0);
  return "; " + sum.toLocaleString("en", { maximumSignificantDigits: 6 }) + " " + data.head.columns[column] + " in all";
}

function countOf(now, rows) {
  const verdicts = verdictsOf(rows, facetsOf(now));
  const several = data.head.runs.length > 1;
  const distinct = (keys, noun) => {
    const n = new Set(rows.map((row) => keys[row])).size;
    return n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
  };
  return rows.length.toLocaleString("en") + " of " + data.ids.length.toLocaleString("en") + (several ? " rows" : " items")
    + (several ? "; " + distinct(data.ids, "item") : "")
    + (now.by === "question" ? "; " + distinct(data.questions, "question") : "")
    + (verdicts === null ? "" : "; occurs " + verdicts.toLocaleString("en") + "×") + sumOf(rows);
}

function tellFilters(now, rows, part) {
  const facets = facetsOf(now);
  const either = numbersOf(now.e);
  const count = document.getElementById("count");
  const filters = document.getElementById("filters");
  const focused = [...filters.children].indexOf(document.activeElement);
  count.textContent = countOf(now, rows)
    + (part < 1 ? "; searched " + Math.round(part * 100) + " %" : "");
  const chip = (label, rest) => el("button", { type: "button", class: "filter", dir: "auto", text: label + " ×",
    "aria-label": "Remove filter " + label, on: { click: () => go({ ...state(), ...rest }) } });
  filters.replaceChildren(
    ...facets.map((f) => chip(data.head.facets[f].label, { f: facets.filter((other) => other !== f).join(",") })),
    ...either.length ? [chip(either.map((f) => data.head.facets[f].label).join(" or ")
      + (now.by ? ", the same " + now.by : ""), { e: "", by: "" })] : [],
    ...now.id === undefined ? [] : [chip("id = " + now.id, { id: "" })]);
  if (focused >= 0) (filters.children[focused] || filters.lastElementChild || count).focus();
  if (document.activeElement !== document.getElementById("search")) document.getElementById("search").value = now.q || "";
}

function apply(now) {
  const several = data.head.runs.length > 1; // then the greatest disagreement comes first
  if (now.s === undefined && several) now.s = "-" + (data.head.columns.indexOf("spread of runs") + 1);
  const column = now.s === undefined ? -1 : Math.abs(parseInt(now.s, 10));
  table.sort = column >= 0 && column <= data.head.columns.length ? { column, down: now.s.startsWith("-") } : null;
  const query = (now.q || "").trim();
  const show = (found, part) => {
    const rows = filtered(now, found);
    showRows(rows);
    tellFilters(now, rows, part);
  };
  const turn = ++searching;
  if (!query) return show(null, 1);
  if (searched.query === query) return show(searched.found, 1);
  return searchRows(query, (found, part) => {
    if (turn !== searching) return false;
    if (part === 1) searched = { query, found };
    show(found, part);
    return true;
  });
}

/** Takes the focus to where a link leads; what is done within the items keeps it. */
function land(now) {
  const items = document.getElementById("items");
  if (items.contains(document.activeElement)) return;
  const part = document.getElementById(location.hash.slice(1));
  const heading = part && part.querySelector("h1, h2");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  } else if (["f", "e", "id"].some((key) => now[key])) {
    items.scrollIntoView();
    document.getElementById("count").focus({ preventScroll: true });
  }
}

async function onState(event) {
  const now = state();
  const before = event && new URLSearchParams(new URL(event.oldURL).hash.slice(1));
  const same = before && ["f", "e", "by", "q", "id", "s"].every((key) => (before.get(key) || "") === (now[key] || ""));
  if (!same) await apply(now);
  const dialog = document.getElementById("item");
  const row = parseInt(now.item, 10);
  if (row >= 0 && row < data.ids.length) return drawItem(row);
  if (dialog.open) dialog.close();
  if (!event) return;
  if (history.state === null) land(now); // a new place; otherwise one come back to
  else if (history.state in links()) links()[history.state].focus();
}

function buildFilters() {
  const select = document.getElementById("facet");
  const groups = new Map();
  data.head.facets.forEach((facet, f) => {
    if (!facet.group || (facet.kind === "run" && data.head.runs.length < 2)) return;
    if (!groups.has(facet.group)) groups.set(facet.group, el("optgroup", { label: facet.group }));
    groups.get(facet.group).append(el("option", { value: f, text: facet.label + " (" + facet.rows.toLocaleString("en") + ")" }));
  });
  select.append(...groups.values());
  select.addEventListener("change", () => {
    if (select.value !== "") go({ ...state(), f: [...new Set([...facetsOf(state()), Number(select.value)])].join(",") });
    select.value = "";
  });
}

async function start() {
  await loadIndex();
  buildHeader();
  buildFilters();
  const body = document.getElementById("grid-body");
  body.addEventListener("scroll", () => requestAnimationFrame(() => drawRows()));
  body.addEventListener("keydown", onKey);
  let waiting;
  document.getElementById("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => go({ ...state(), q: event.target.value }), 250);
  });
  document.getElementById("item").addEventListener("close", () => {
    const { item, ...rest } = state();
    if (item !== undefined) go(rest);
    moveTo(table.active);
    document.activeElement.scrollIntoView({ block: "nearest" });
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    leave(link);
    if (link.hash === location.hash) land(state()); // no change of state tells of it
  });
  window.addEventListener("hashchange", onState);
  await onState();
  document.body.dataset.ready = "yes";
}

start();
