// The page's state is its location hash: f facets that all rows have, e facets of which each has one, by "id" or
// "question": only those that rows of each of e share; q search, id, s sort, item the row that is open.
const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const KEYS = { id: "ids", question: "questions" }; // by what, and where the data has it
let searching = 0;
let searched = { query: "" };

/** Links of the page itself; those of an open item come and go. */
const links = () => [...document.querySelectorAll("header a, nav a, main a")];

/** The history keeps with each place that was left the number of the link that led away, -1 for none. */
const leave = (link) => history.replaceState(links().indexOf(link), "");

/** The hash of a state; an empty one would scroll to the top. */
function hashOf(next) {
  const given = Object.entries(next).filter(([, value]) => value !== "" && value !== undefined);
  return "#" + (new URLSearchParams(given).toString().replaceAll("%2C", ",") || "all");
}

function go(next) {
  leave(null);
  location.hash = hashOf(next);
}

/** Whether a text of the hash, which anyone can write, is a place in a list. */
const placeIn = (list, text) => /^\d+$/.test(text) && text in list;

const numbersOf = (text) => [...new Set((text || "").split(","))].filter((f) => placeIn(data.head.facets, f)).map(Number);
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
  return either.length && Object.hasOwn(KEYS, now.by) ? shared(rows, either, data[KEYS[now.by]]) : rows;
}

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

function tellFilters(now, rows, { part, unread }) {
  const facets = facetsOf(now);
  const either = numbersOf(now.e);
  const count = document.getElementById("count");
  const filters = document.getElementById("filters");
  const focused = [...filters.children].indexOf(document.activeElement);
  count.textContent = countOf(now, rows)
    + (part < 1 ? "; searched " + Math.round(part * 100) + " %" : "")
    + (unread ? "; not all could be searched: " + unread : "");
  const chip = (label, rest) => el("button", { type: "button", class: "filter", dir: "auto", text: label + " ×",
    "aria-label": "Remove filter " + label, on: { click: () => go({ ...state(), ...rest }) } });
  filters.replaceChildren(
    ...facets.map((f) => chip(data.head.facets[f].label, { f: facets.filter((other) => other !== f).join(",") })),
    ...either.length ? [chip(either.map((f) => data.head.facets[f].label).join(" or ")
      + (Object.hasOwn(KEYS, now.by) ? ", the same " + now.by : ""), { e: "", by: "" })] : [],
    ...now.id === undefined ? [] : [chip("id = " + now.id, { id: "" })]);
  if (focused >= 0) (filters.children[focused] || filters.lastElementChild || count).focus();
  if (document.activeElement !== document.getElementById("search")) document.getElementById("search").value = now.q || "";
}

function apply(now) {
  const several = data.head.runs.length > 1; // then the greatest disagreement comes first
  const known = /^-?\d+$/.test(now.s) && Math.abs(now.s) <= data.head.columns.length;
  if (!known) now.s = several ? "-" + (data.head.columns.indexOf("spread of runs") + 1) : "";
  table.sort = now.s ? { column: Math.abs(now.s), down: now.s.startsWith("-") } : null;
  const query = (now.q || "").trim();
  const show = (search) => {
    const rows = filtered(now, search.found);
    showRows(rows);
    tellFilters(now, rows, search);
  };
  const turn = ++searching;
  if (!query) return show({});
  if (searched.query === query) return show(searched);
  return searchRows(query, (search) => {
    if (turn !== searching) return false;
    if (search.part === 1) searched = { query, ...search };
    show(search);
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
  } else if (!data.head || now.id || numbersOf(now.f).length || numbersOf(now.e).length) {
    items.scrollIntoView();
    document.getElementById("count").focus({ preventScroll: true });
  }
}

async function onState(event) {
  const now = state();
  const before = event && new URLSearchParams(new URL(event.oldURL).hash.slice(1));
  const same = before && ["f", "e", "by", "q", "id", "s"].every((key) => (before.get(key) || "") === (now[key] || ""));
  if (data.head && !same) await apply(now);
  const dialog = document.getElementById("item");
  if (placeIn(data.ids, now.item)) return drawItem(Number(now.item));
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

/** The figures alone, where the items can't be read; numbers lead to why. */
function tellUnread(error) {
  document.getElementById("count").textContent = "The items can't be read: " + error.message + ".";
  for (const name of ["controls", "grid"]) document.getElementById(name).remove();
}

function showItems() {
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
}

async function start() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    leave(link);
    if (link.hash === location.hash) land(state()); // no change of state tells of it
  });
  await loadIndex().then(showItems, tellUnread);
  window.addEventListener("hashchange", onState);
  await onState();
  document.body.dataset.ready = "yes";
}

start();
