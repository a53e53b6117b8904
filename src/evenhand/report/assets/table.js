// The table of all items: only the rows in sight are in the page.

const ROW = 34; // pixels, as in the style sheet
const table = { order: [], active: 0, sort: null };

/** An element; texts are set as text, so that nothing in them can run. */
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const shown = (value) => value === null || value === undefined ? "" : typeof value === "boolean" ? (value ? "True" : "False") // as in figures and filters
  : typeof value === "number" ? String(Math.round(value * 1000) / 1000) : String(value);

/** Columns in the page, by number: those that have no value in any row are left out. */
const visible = () => data.head.columns.map((_, c) => c).filter((c) => !data.head.hidden.includes(c));

function buildHeader() {
  const header = document.getElementById("grid-header");
  const columns = [0, ...visible().map((c) => c + 1)];
  document.getElementById("grid").setAttribute("aria-colcount", columns.length);
  columns.forEach((c, place) => {
    const name = c ? data.head.columns[c - 1] : "id";
    const cell = el("div", { role: "columnheader", "aria-colindex": place + 1, "aria-sort": "none" },
      el("button", { type: "button", text: name, dir: "auto", title: name, on: { click: () => sortBy(c) } }));
    cell.dataset.column = c;
    cell.classList.toggle("number", c > 0 && typeof data.columns[c - 1].find((value) => value !== null) === "number");
    header.append(cell);
  });
  const body = document.getElementById("grid-body");
  header.style.paddingInlineEnd = body.offsetWidth - body.clientWidth + "px"; // as wide as its scroll bar
  const style = document.getElementById("grid").style;
  style.setProperty("--columns", "minmax(11rem, 2fr) " + visible().map(() => "minmax(8rem, 1fr)").join(" "));
  style.setProperty("--width", 11 + 8 * visible().length + "rem");
}

function sortBy(column) {
  const turned = table.sort && table.sort.column === column && !table.sort.down;
  go({ ...state(), s: (turned ? "-" : "") + column });
}

function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined || a === "") return 2; // what is missing comes last, in both directions
  if (b === null || b === undefined || b === "") return -2;
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : 1;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** Show these rows, sorted as the state says. */
function showRows(rows) {
  if (table.sort) {
    const values = table.sort.column === 0 ? data.ids : data.columns[table.sort.column - 1];
    const sign = table.sort.down ? -1 : 1;
    rows.sort((a, b) => {
      const found = compareValues(values[a], values[b]);
      return Math.abs(found) === 2 ? found : sign * found || a - b;
    });
  }
  table.order = rows;
  table.active = Math.min(table.active, Math.max(0, rows.length - 1));
  [...document.getElementById("grid-header").children].forEach((cell) => cell.setAttribute("aria-sort",
    table.sort && table.sort.column === Number(cell.dataset.column) ? (table.sort.down ? "descending" : "ascending") : "none"));
  document.getElementById("grid").setAttribute("aria-rowcount", rows.length + 1);
  document.getElementById("grid-space").style.height = rows.length * ROW + "px";
  drawRows();
}

function drawRows(focus) {
  const scroller = document.getElementById("grid-body");
  const space = document.getElementById("grid-space");
  const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - 5);
  const last = Math.min(table.order.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + 5);
  const hadFocus = focus || space.contains(document.activeElement);
  const reachable = table.active >= first && table.active < last ? table.active : first;
  const rows = [];
  for (let i = first; i < last; i++) {
    const row = table.order[i];
    const cells = [data.ids[row], ...visible().map((c) => data.columns[c][row])];
    const line = el("div", { role: "row", class: "row", "aria-rowindex": i + 2, tabindex: i === reachable ? 0 : -1,
      on: { click: () => openItem(row) } },
    ...cells.map((value, c) => el("div", { role: c ? "gridcell" : "rowheader", "aria-colindex": c + 1, dir: "auto",
      class: typeof value === "number" ? "number" : null, text: shown(value), title: c ? null : value })));
    line.style.top = i * ROW + "px";
    line.dataset.place = i;
    rows.push(line);
  }
  space.replaceChildren(...rows);
  if (hadFocus) (rows[reachable - first] || document.getElementById("count")).focus({ preventScroll: true });
}

function moveTo(place) {
  table.active = Math.max(0, Math.min(table.order.length - 1, place));
  const scroller = document.getElementById("grid-body");
  const top = table.active * ROW;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
  drawRows(true);
}

function onKey(event) {
  const page = Math.max(1, Math.floor(event.currentTarget.clientHeight / ROW) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.target.dataset.place !== undefined) table.active = Number(event.target.dataset.place);
  if (event.key in steps) moveTo(table.active + steps[event.key]);
  else if (event.key === "Enter" || event.key === " ") openItem(table.order[table.active]);
  else return;
  event.preventDefault();
}
