"use strict";
// The data blocks of the page: inflated when they are needed, never run.

const data = { head: null, ids: [], questions: [], columns: [], facets: [], counts: [] };
const opened = new Map(); // the chunks opened last, by number

async function inflate(block) {
  const packed = atob(block.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

const inflateJson = async (block) => JSON.parse(await inflate(block));

async function loadIndex() {
  data.head = await inflateJson(document.getElementById("head"));
  data.columns = data.head.columns.map(() => []);
  const pieces = await Promise.all([...document.querySelectorAll("script.index")].map(inflateJson));
  for (const piece of pieces) {
    for (const id of piece.ids) data.ids.push(id);
    for (const question of piece.questions) data.questions.push(question);
    piece.cells.forEach((values, c) => { for (const value of values) data.columns[c].push(value); });
    for (const facets of piece.facets) data.facets.push(facets);
    for (const counts of piece.counts) data.counts.push(counts);
  }
}

/** The lines of a chunk, one JSON text a row. */
async function chunk(number) {
  if (!opened.has(number)) {
    const text = await inflate(document.getElementById("chunk-" + number));
    opened.set(number, text.split("\n"));
    if (opened.size > 4) opened.delete(opened.keys().next().value);
  }
  return opened.get(number);
}

async function detailOf(row) {
  const starts = data.head.starts;
  let number = 0;
  while (number + 1 < starts.length && starts[number + 1] <= row) number++;
  return JSON.parse((await chunk(number))[row - starts[number]]);
}

/** Whether a text occurs in any value of some JSON data; names of keys don't count. */
function holds(value, wanted) {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (value === null || typeof value !== "object") return false;
  return Object.values(value).some((inner) => holds(inner, wanted));
}

/** Rows that hold a text anywhere, found chunk by chunk; `told` is called after each and may end the search. */
async function searchRows(query, told) {
  const wanted = query.toLowerCase();
  const found = new Set();
  data.ids.forEach((id, row) => { if (id.toLowerCase().includes(wanted)) found.add(row); });
  const escaped = JSON.stringify(wanted).slice(1, -1);
  const starts = data.head.starts;
  for (let number = 0; number < starts.length; number++) {
    const lines = opened.has(number) ? opened.get(number)
      : (await inflate(document.getElementById("chunk-" + number))).split("\n");
    lines.forEach((line, i) => {
      if (line.toLowerCase().includes(escaped) && holds(JSON.parse(line), wanted)) found.add(starts[number] + i);
    });
    if (!told(found, (number + 1) / starts.length)) return;
    await new Promise((resolve) => setTimeout(resolve));
  }
}
