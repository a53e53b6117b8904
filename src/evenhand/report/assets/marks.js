// Texts as pieces [text, marked]: what differs between two texts, and quotes where they stand.

const MOST_CELLS = 4e6;

const WORD = /(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+|[^])\s*/gu;

/** Words of both texts, each with the space after it; marked are those outside their longest common subsequence. */
function wordDiff(a, b) {
  const texts = [a.match(WORD) || [], b.match(WORD) || []];
  const [left, right] = texts.map((words) => words.map((word) => word.trim()));
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let ends = 0;
  while (ends < left.length - start && ends < right.length - start
    && left[left.length - 1 - ends] === right[right.length - 1 - ends]) ends++;
  const n = left.length - start - ends;
  const m = right.length - start - ends;
  if (n * m > MOST_CELLS) return null; // too long to be told apart in time
  const width = m + 1;
  const longest = new Uint32Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      longest[i * width + j] = left[start + i] === right[start + j]
        ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const common = [new Set(), new Set()];
  for (let i = 0, j = 0; i < n && j < m;) {
    if (left[start + i] === right[start + j]) { common[0].add(start + i++); common[1].add(start + j++); }
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return texts.map((words, side) => joined(words.map((word, k) => [
    word, k >= start && k < words.length - ends && !common[side].has(k)])));
}

/** Neighbours of one kind as one piece. */
function joined(pieces) {
  const out = [];
  for (const [text, marked] of pieces) {
    const last = out[out.length - 1];
    if (last && last[1] === marked) last[0] += text; else out.push([text, marked]);
  }
  return out;
}

/** A text with its quotes marked, however white space is laid out; null where none stands in it. */
function quoted(text, quotes) {
  if (!quotes.length) return null;
  const kept = [];
  const at = []; // place in the text of each character kept
  for (let i = 0; i < text.length; i++) {
    const space = /\s/.test(text[i]);
    if (space && (!kept.length || kept[kept.length - 1] === " ")) continue;
    kept.push(space ? " " : text[i]);
    at.push(i);
  }
  const folded = kept.join("");
  const marked = new Uint8Array(text.length);
  let any = false;
  for (const quote of quotes) {
    const wanted = quote.split(/\s+/).filter(Boolean).join(" ");
    for (let i = wanted ? folded.indexOf(wanted) : -1; i >= 0; i = folded.indexOf(wanted, i + 1)) {
      marked.fill(1, at[i], at[i + wanted.length - 1] + 1);
      any = true;
    }
  }
  return any ? joined([...text].reduce((out, c) => {
    out.pieces.push([c, marked[out.at] === 1]);
    out.at += c.length;
    return out;
  }, { pieces: [], at: 0 }).pieces) : null;
}
