"use strict";
// The data blocks of the page: inflated when they are needed, never run.

const data = { head: null, ids: [], questions: [], columns: [], facets: [], counts: [] };
const opened = new Map(); // the chunks opened last, by number

/** The text of a block; its checksum tells whether it is whole. Where it can't be read, an error that says why. */
async function inflate(block) {
  if (!("DecompressionStream" in window)) throw new Error("this browser is too old for it; open it in a newer one");
  try {
    const packed = atob(block.textContent);
    const bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  } catch {
    throw new Error("this file is damaged; write the report again");
  }
}

const inflateJson = async (block) => JSON.parse(await inflate(block));

async function loadIndex() {
  const [head, ...pieces] = await Promise.all(
    [document.getElementById("head"), ...document.querySelectorAll("script.index")].map(inflateJson));
  data.head = head;
  data.columns = head.columns.map(() => []);
  for (const piece of pieces) {
    for (const id of piece.ids) data.ids.push(id);
    for (const question of piece.questions) data.questions.push(question);
    piece.cells.forEach((values, c) => { for (const value of values) data.columns[c].push(value); });
    for (const facets of piece.facets) data.facets.push(facets);
    for (const counts of piece.counts) data.counts.push(counts);
  }
}

/** The lines of a chunk, one JSON text a row. */
const chunk = async (number) => opened.get(number)
  || (await inflate(document.getElementById("chunk-" + number))).split("\n");

async function detailOf(row) {
  const starts = data.head.starts;
  let number = 0;
  while (number + 1 < starts.length && starts[number + 1] <= row) number++;
  opened.set(number, await chunk(number));
  if (opened.size > 4) opened.delete(opened.keys().next().value);
  return JSON.parse(opened.get(number)[row - starts[number]]);
}

/** Whether a text occurs in any value of some JSON data; names of keys don't count. */
function holds(value, wanted) {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (value === null || typeof value !== "object") return false;
  return Object.values(value).some((inner) => holds(inner, wanted));
}

/** Rows that hold a text anywhere, found chunk by chunk; `told` is called after each and may end the search. It is
 * handed those found, the part that was searched, and why some could not be. */
async function searchRows(query, told) {
  const wanted = query.toLowerCase();
  const found = new Set();
  data.ids.forEach((id, row) => { if (id.toLowerCase().includes(wanted)) found.add(row); });
  const escaped = JSON.stringify(wanted).slice(1, -1);
  const starts = data.head.starts;
  let unread = "";
  for (let number = 0; number < starts.length; number++) {
    const lines = await chunk(number).catch((error) => { unread = error.message; return []; });
    lines.forEach((line, i) => {
      if (line.toLowerCase().includes(escaped) && holds(JSON.parse(line), wanted)) found.add(starts[number] + i);
    });
    if (!told({ found, part: (number + 1) / starts.length, unread })) return;
    await new Promise((resolve) => setTimeout(resolve));
  }
}
