// One item: what was judged, the verdicts in each order and repeat, the prompts and the replies.

function textOf(value, language) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return el("pre", { dir: "auto", lang: language || null, tabindex: text.length > 1500 ? 0 : null, text });
}

function piecesOf(pieces, language, what) {
  return el("pre", { dir: "auto", lang: language }, ...pieces.map(([text, marked]) => marked
    ? el("mark", { title: what, text }) : document.createTextNode(text)));
}

const TURNING = /[\u202a-\u202e\u2066-\u2069]/g; // signs that turn the order of what is shown around

/** A name from outside in a sentence: its direction is kept to itself, signs that turn text are shown as escapes. */
const named = (text) => el("bdi", { text: String(text).replace(TURNING, (sign) => "\\u" + sign.charCodeAt(0).toString(16)) });
const block = (title, ...inner) => el("section", {}, el("h4", { dir: "auto" }, ...[title].flat()), ...inner);
const labelled = (run, name) => run.labels[name] || name;

function judgedTexts(run, item) {
  const fields = item.fields;
  const quotes = item.trials.flatMap((trial) => Object.values(trial.verdict.fields)
    .flatMap((field) => Array.isArray(field.value) ? field.value.filter((v) => typeof v === "string") : []));
  const beside = run.beside.filter((name) => typeof fields[name] === "string");
  const diff = beside.length === 2 ? wordDiff(fields[beside[0]], fields[beside[1]]) : null;
  const parts = Object.keys(fields).filter((name) => !beside.includes(name) && fields[name].length !== 0).map((name) => {
    const pieces = typeof fields[name] === "string" ? quoted(fields[name], quotes) : null;
    return block(labelled(run, name), pieces ? piecesOf(pieces, run.language, "quoted by the judge")
      : textOf(fields[name], run.language));
  });
  const sides = beside.map((name, side) => block(labelled(run, name), diff
    ? piecesOf(diff[side], run.language, "differs") : textOf(fields[name], run.language)));
  if (sides.length) parts.push(el("div", { class: "sides" }, ...sides));
  for (const name of item.null_answers || []) parts.push(block(labelled(run, name), el("p", { text: "null: no text at all" })));
  for (const [rater, said] of Object.entries(item.labels || {})) parts.push(block(["Labels of ", named(rater)], textOf(
    Object.entries(said).map(([name, value]) => name + ": " + value).join("\n"), run.language)));
  for (const [name, value] of Object.entries(item.extra)) parts.push(block(name, textOf(value)));
  return parts;
}

/** An entry of a list; of one with parts their names and values. */
const entry = (value) => value !== null && typeof value === "object"
  ? Object.entries(value).map(([name, part]) => name + ": " + (typeof part === "string" ? part : JSON.stringify(part))).join("; ")
  : String(value);

function outcome(field) {
  if (!field) return [el("span", { text: "-" })];
  if (field.failure) return [el("em", { text: [field.failure, field.detail].filter(Boolean).join(": ") })];
  const value = field.value;
  const parts = [Array.isArray(value) && value.length
    ? el("ul", {}, ...value.map((v) => el("li", { dir: "auto", text: entry(v) })))
    : el("span", { dir: "auto", class: "value", text: value === null ? "null" : Array.isArray(value) ? "none" : shown(value) })];
  if (field.preset) parts.push(el("small", { text: " set in code" }));
  if (field.distribution) {
    const odds = Object.entries(field.distribution.probabilities || {}).filter(([, p]) => p >= 0.005)
      .map(([v, p]) => v + ": " + Math.round(p * 100) + " %").join(", ");
    if (odds) parts.push(el("small", { text: " (" + odds + ")" }));
  }
  return parts;
}

const trialName = (trial) => [trial.order && "order " + trial.order.toUpperCase(), "repeat " + (trial.repeat + 1)]
  .filter(Boolean).join(", ");

/** The rules that a verdict breaks, and how many could not be checked on it. */
function rulesBroken(run, verdict) {
  const unchecked = verdict.status === "failed" ? run.rules : verdict.not_checked.length;
  const broken = verdict.violations.map(([rule, severity, message]) =>
    el("li", {}, el("strong", {}, severity + " ", named(rule)), ": ", named(message)));
  if (!broken.length && unchecked && unchecked >= run.rules) return [el("span", { text: "not checked" })];
  const rest = unchecked ? el("small", { text: " (" + unchecked + " of " + run.rules + " rules not checked)" }) : null;
  return [broken.length ? el("ul", {}, ...broken) : el("span", { text: run.rules ? "none" : "the rubric has no rules" }),
    ...rest ? [rest] : []];
}

function verdictTable(run, item) {
  const names = [...new Set(item.trials.flatMap((trial) => Object.keys(trial.verdict.fields)))];
  const line = (title, cells) => el("tr", {}, el("th", { scope: "row", text: title }), ...cells);
  const each = (make) => item.trials.map((trial) => el("td", { lang: run.language }, ...make(trial.verdict)));
  const rows = [line("status", each((v) => [el("span",
    { text: [v.status, v.failure, v.detail].filter(Boolean).join(": ") + (v.re_asked ? ", re-asked" : "") })]))];
  for (const name of names) rows.push(line(name, each((v) => outcome(v.fields[name]))));
  rows.push(line("rules broken", each((v) => rulesBroken(run, v))));
  const ordered = item.trials.some((trial) => trial.order);
  return el("table", {}, ordered ? el("caption", { text: "In the item's own order of responses" }) : null,
    el("thead", {}, el("tr", {}, el("td", {}), ...item.trials.map((t) => {
      const head = el("th", { scope: "col", text: trialName(t) });
      head.style.width = 85 / item.trials.length + "%"; // orders and repeats side by side, alike
      return head;
    }))),
    el("tbody", {}, ...rows));
}

function wonBy(item) {
  return (item.preferred || []).map((told) => {
    const sides = Object.entries(told.sides).map(([order, side]) => order.toUpperCase() + ": " + (side === null ? "-" : side));
    const result = told.flip === null ? "not known" : told.flip ? "changes with the order" : told.side;
    return el("p", { class: "won", text: "Preferred, repeat " + (told.repeat + 1) + ": " + result + " (" + sides.join(", ") + ")" });
  });
}

function messageText(message) {
  const content = typeof message.static === "number" ? data.head.statics[message.static] : message.content;
  if (typeof content === "string") return content;
  return content.map((part) => part.type === "text" ? part.text : part.type === "image"
    ? "[image: " + part.name + ", " + part.bytes + " bytes]" : "[image: " + part.image_url.url + "]").join("\n");
}

function exchanges(run, trial) {
  const parts = trial.prompt.map((message) => block("Prompt: " + message.role, textOf(messageText(message), run.language)));
  for (const sent of trial.replies) {
    const reply = sent.reply;
    if (sent.attempt) parts.push(...trial.re_ask.map((message) => block("Re-ask: " + message.role, textOf(messageText(message), run.language))));
    const title = (sent.attempt ? "Raw reply to the re-ask" : "Raw reply") + " (" + sent.form + ")";
    const texts = [reply.reasoning && "[reasoning] " + reply.reasoning, reply.refusal && "[refusal] " + reply.refusal,
      reply.text, ...(reply.tool_calls || []).map(([name, said]) =>
        name + ": " + (typeof said === "string" ? said : JSON.stringify(said)))].filter(Boolean);
    const usage = Object.entries(reply.usage || {}).filter(([, n]) => n !== null).map(([name, n]) => name + " " + n);
    parts.push(block(title, textOf(texts.join("\n") || "(empty)", run.language), el("small", {
      text: [reply.model, reply.finish && "finish " + reply.finish, ...usage, "request " + sent.request]
        .filter(Boolean).join(", ") })));
  }
  if (!trial.prompt.length) parts.push(el("p", { text: "No prompt: all was set in code, or the texts were not kept." }));
  return el("details", { class: "exchanges" }, el("summary", { text: "Prompt and raw replies, " + trialName(trial) }), ...parts);
}

/** All that is told of an item below its heading. */
function partsOf(item) {
  const run = data.head.runs[item.run];
  const body = [];
  if (item.problem) body.push(el("p", { class: "won", text: "This row could not be used: " + item.problem }));
  body.push(...wonBy(item));
  if (item.trials.length) body.push(el("h3", { text: "Verdicts" }), el("div", { class: "wide", tabindex: 0, role: "region",
    "aria-label": "Verdicts" }, verdictTable(run, item)));
  else if (!item.problem) body.push(el("p", { text: "Not asked yet." }));
  body.push(el("h3", { text: "What was judged" }), ...judgedTexts(run, item));
  if (item.trials.length) body.push(el("h3", { text: "What was asked and said" }));
  return [...body, ...item.trials.map((trial) => exchanges(run, trial))];
}

async function drawItem(row) {
  const body = await detailOf(row).then(
    (item) => [el("p", {}, "Run ", named(data.head.runs[item.run].name)), ...partsOf(item)],
    (error) => [el("p", { class: "won", text: "This item can't be read: " + error.message + "." })]);
  if (state().item !== String(row)) return; // another was asked for meanwhile, or none
  const dialog = document.getElementById("item");
  const place = table.order.indexOf(row);
  if (place >= 0) table.active = place; // the row to come back to
  const step = (by, text) => el("button", { type: "button", text, disabled: place < 0 || !(place + by in table.order),
    on: { click: () => openItem(table.order[place + by]) } });
  const others = (data.head.runs.length > 1 ? rowsOfId(data.ids[row]) : []).filter((other) => other !== row);
  const head = el("header", {}, el("h2", { id: "item-title", tabindex: -1, dir: "auto", text: data.ids[row] }),
    el("div", { class: "steps" }, step(-1, "Previous"), step(1, "Next"),
      el("button", { type: "button", text: "Close", on: { click: () => dialog.close() } })));
  body.splice(1, 0, ...others.map((other) => el("p", {}, el("a",
    { href: hashOf({ ...state(), item: other }) }, "The same item in ", named(runOf(other))))));
  dialog.replaceChildren(head, ...body);
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("item-title").focus();
}
