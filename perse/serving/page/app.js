// The page's one idea: what stands in the fields is one request of the judge's own API, and every answer is drawn from its JSON.
// All text is set by textContent; the key is a variable, and nothing is stored.
import { readCsv } from "./csv.js";
import { samples } from "./samples.js";

const $ = (id) => document.getElementById(id);
const MOST_SHOWN = 40; // rows of a long list that are drawn; all are sent
const state = { kind: "one", entries: { one: [], two: [] }, questions: [], asking: null, history: [] };

function made(tag, properties = {}, ...children) {
  const { dataset, ...plain } = properties;
  const element = Object.assign(document.createElement(tag), plain);
  Object.assign(element.dataset, dataset || {});
  element.append(...children);
  return element;
}
const percent = (share) => `${(100 * share).toFixed(1)}%`;
const problem = (text) => made("p", { className: "problem", textContent: text });

// --- the reader ---
const blank = () => (state.kind === "one" ? { text: "", review: "", score: 5 } : { text_a: "", text_b: "", preference: "A" });

function field(label, tag, entry, name, properties = {}) {
  const input = made(tag, { value: entry[name] ?? "", ...properties });
  input.addEventListener("input", () => { entry[name] = name === "score" ? Number(input.value) : input.value; });
  return made("label", {}, label, input);
}

function drawnEntry(entry, at) {
  const remove = made("button", { type: "button", textContent: "Remove", ariaLabel: `Remove entry ${at + 1}` });
  remove.addEventListener("click", () => { entries().splice(at, 1); drawEntries(); $("add").focus(); });
  const rest = state.kind === "one"
    ? [field("Text they read", "textarea", entry, "text", { rows: 2 }), field("What they wrote", "textarea", entry, "review", { rows: 2 })]
    : [field("Text A", "textarea", entry, "text_a", { rows: 2 }), field("Text B", "textarea", entry, "text_b", { rows: 2 })];
  return made("li", {}, ...rest, made("div", { className: "row" }, state.kind === "one" ? scoreField(entry) : preferenceField(entry), remove));
}

function scoreField(entry) {
  return field("Score, 1 to 10", "input", entry, "score", { type: "number", min: 1, max: 10, step: 1 });
}

function preferenceField(entry) {
  const select = made("select", {}, made("option", { value: "A", textContent: "A" }), made("option", { value: "B", textContent: "B" }));
  select.value = entry.preference;
  select.addEventListener("change", () => { entry.preference = select.value; });
  return made("label", {}, "They preferred", select);
}

const entries = () => state.entries[state.kind];

function drawEntries() {
  const drawn = entries().slice(0, MOST_SHOWN);
  $("entries").replaceChildren(...drawn.map(drawnEntry));
  const left = entries().length - drawn.length;
  $("more-entries").hidden = left <= 0;
  $("more-entries").textContent = left > 0 ? `and ${left} more, which are sent too` : "";
}

function chooseKind(kind) {
  state.kind = kind;
  const one = kind === "one";
  $("tab-one").setAttribute("aria-pressed", one); $("tab-two").setAttribute("aria-pressed", !one);
  $("query-one").hidden = !one; $("query-two").hidden = one;
  $("add").textContent = one ? "Add a review" : "Add a comparison";
  $("csv-help").textContent = one ? "Columns: text, review, score (1 to 10)." : "Columns: text_a, text_b, preference (A or B).";
  $("sample").replaceChildren(made("option", { value: "", textContent: "choose" }), ...Object.keys(samples[kind]).map((name) => made("option", { value: name, textContent: name })));
  csvProblem("");
  fillQuestions();
  drawEntries();
}

function useSample(name) {
  const sample = samples[state.kind][name];
  if (!sample) return;
  state.entries[state.kind] = structuredClone(sample.entries);
  for (const [id, value] of [["query", sample.query], ["aspect", sample.aspect], ["text-a", sample.text_a], ["text-b", sample.text_b]]) if (value) $(id).value = value;
  drawEntries();
}

function csvProblem(text) { $("csv-problem").hidden = !text; $("csv-problem").textContent = text; }

async function useCsv(file) {
  const name = file.name;
  try {
    const rows = readCsv(await file.text(), state.kind === "one" ? ["text", "review", "score"] : ["text_a", "text_b", "preference"]);
    if (!rows.length) throw new Error("no rows below the columns' names");
    state.entries[state.kind] = rows.map((row) => (state.kind === "one" ? reviewOf(row) : comparisonOf(row)));
    csvProblem("");
    drawEntries();
  } catch (error) { csvProblem(`${name}: ${error.message}`); }
}

function reviewOf({ line, text, review, score }) {
  if (!/^\s*([1-9]|10)(\.0*)?\s*$/.test(score)) throw new Error(`line ${line}: the score is '${score.slice(0, 40)}', expected a whole number from 1 to 10`);
  if (!text.trim()) throw new Error(`line ${line}: the text is empty`);
  return { text, review, score: Number(score) };
}

function comparisonOf({ line, text_a, text_b, preference }) {
  const chosen = preference.trim().toUpperCase();
  if (chosen !== "A" && chosen !== "B") throw new Error(`line ${line}: the preference is '${preference.slice(0, 40)}', expected A or B`);
  return { text_a, text_b, preference: chosen };
}

// --- the question ---
const headers = () => ({ "Content-Type": "application/json", ...($("key").value.trim() ? { Authorization: `Bearer ${$("key").value.trim()}` } : {}) });
const route = () => (state.kind === "one" ? "pointwise" : "pairwise");

function fillQuestions() {
  const fitting = state.questions.filter((one) => one.route.endsWith(route()));
  $("question").replaceChildren(...fitting.map((one) => made("option", { value: one.name, textContent: one.name })));
  helpQuestion();
}

function helpQuestion() {
  const chosen = state.questions.find((one) => one.name === $("question").value);
  $("question-help").textContent = chosen ? (chosen.writes_text ? "Writes the review first, then scores behind it." : "Reads the answer's probabilities without writing; fast.") : "";
}

async function learn() {
  const [version, questions] = await Promise.all(["version", "v1/judge/questions"].map(async (path) => {
    const answer = await fetch(path, { headers: headers() });
    if (!answer.ok) throw Object.assign(new Error(), { status: answer.status });
    return answer.json();
  }));
  $("model").replaceChildren(...Object.keys(version.models).map((name) => made("option", { value: name, textContent: name })));
  state.questions = questions.questions;
  fillQuestions();
}

function wantKey() {
  $("key").closest("details").open = true;
  $("key").focus();
  $("answer").replaceChildren(problem("This server wants an API key; enter yours in the field, and ask again."));
}

function requested() {
  const input = state.kind === "one"
    ? { profile: entries().map(({ text, review, score }) => ({ text, review, score })), query: $("query").value }
    : {
        aspect: $("aspect").value.trim(),
        profile: entries().map(({ text_a, text_b, preference }) => ({ text_a, text_b, preference: { [$("aspect").value.trim()]: preference } })),
        query: { text_a: $("text-a").value, text_b: $("text-b").value },
      };
  const numbers = { temperature: $("temperature").value, seed: $("seed").value, max_new_tokens: $("max-new-tokens").value };
  const given = Object.entries(numbers).filter(([, value]) => value !== "").map(([name, value]) => [name, Number(value)]);
  return { input, ...Object.fromEntries(given), ...($("question").value ? { question: $("question").value } : {}), ...($("model").value ? { model: $("model").value } : {}) };
}

async function ask() {
  if (state.asking) return;
  const body = requested();
  const empty = state.kind === "one" ? !body.input.query.trim() : !body.input.query.text_a.trim() || !body.input.query.text_b.trim();
  if (empty) { $("answer").replaceChildren(problem("Give a text to judge.")); (state.kind === "one" ? $("query") : $("text-a")).focus(); return; }
  state.asking = new AbortController();
  busy(true);
  try {
    if (!state.questions.length) { await learn(); Object.assign(body, { question: $("question").value, model: $("model").value }); }
    const answer = await fetch(`v1/judge/${route()}`, { method: "POST", headers: headers(), body: JSON.stringify(body), signal: state.asking.signal });
    const told = await answer.json().catch(() => null);
    if (answer.status === 401) wantKey();
    else if (!answer.ok) $("answer").replaceChildren(problem(refused(answer, told)));
    else keep({ kind: state.kind, body, judgement: told });
  } catch (error) {
    if (error.status === 401) wantKey();
    else if (error.name === "AbortError") $("answer").replaceChildren(made("p", { textContent: "Stopped." }));
    else $("answer").replaceChildren(problem(`The server does not answer (${error.message || error.status}). Is it still running?`));
  } finally { state.asking = null; busy(false); }
}

function refused(answer, told) {
  const why = told?.error?.message || `The server answered ${answer.status}.`;
  const wait = Number(answer.headers.get("Retry-After"));
  return wait > 0 ? `${why} Try again in ${wait} ${wait === 1 ? "second" : "seconds"}.` : why;
}

function busy(now) {
  $("go").disabled = now; $("stop").hidden = !now;
  $("go").classList.toggle("busy", now);
  $("answer").setAttribute("aria-busy", now);
  if (now) $("answer").replaceChildren(made("p", { textContent: "The judge is reading." }));
}

// --- the answer ---
function drawAnswer({ kind, judgement }) {
  const parts = [];
  if (judgement.status !== "ok") parts.push(problem(`${judgement.status}: ${judgement.error || "no answer"}`));
  else if (judgement.distribution) parts.push(...drawnShares(kind, judgement));
  else if (judgement.label) parts.push(made("p", { className: "verdict", textContent: `Answer: ${judgement.label}` }));
  if (judgement.text) parts.push(made("p", { className: "hint", textContent: "What they might write:" }), made("blockquote", { textContent: judgement.text }));
  parts.push(made("p", { className: "hint", textContent: facts(judgement) }));
  $("answer").replaceChildren(...parts);
}

function drawnShares(kind, judgement) {
  const shares = Object.entries(judgement.distribution);
  const best = shares.reduce((a, b) => (b[1] > a[1] ? b : a));
  const verdict = kind === "one"
    ? `Expected score ${judgement.expected.toFixed(1)} of ${shares.at(-1)[0]}`
    : `${best[0]} is preferred with probability ${percent(best[1])}`;
  const rows = shares.map(([label, share]) => made("tr", { className: label === best[0] ? "best" : "" },
    made("th", { scope: "row", textContent: label }),
    made("td", {}, made("meter", { min: 0, max: 1, value: share, ariaLabel: `${label}: ${percent(share)}` })),
    made("td", { className: "share", textContent: percent(share) })));
  const said = [made("p", { className: "verdict", textContent: verdict }), made("table", {}, made("caption", { className: "hint", textContent: "Probability of each answer" }), made("tbody", {}, ...rows))];
  if (judgement.order_gap !== null && judgement.order_gap !== undefined) said.push(made("p", { className: "hint", textContent: orderSaid(judgement) }));
  return said;
}

function orderSaid({ order_gap, order_probabilities }) {
  const each = order_probabilities ? ` (A: ${percent(order_probabilities[0])} shown first, ${percent(order_probabilities[1])} shown second)` : "";
  const disagree = order_probabilities && order_probabilities[0] >= 0.5 !== order_probabilities[1] >= 0.5;
  if (disagree) return `Order gap ${order_gap.toFixed(2)}${each}: the two orders prefer different texts, so this answer says little.`;
  return `Order gap ${order_gap.toFixed(2)}${each}: both orders were asked and averaged; 0 means that the order made no difference.`;
}

function facts(judgement) {
  const reviews = `${judgement.k_effective} of the reader's past entries shown`;
  const mass = judgement.mass === null ? "" : `, ${percent(judgement.mass)} of the probability on answers`;
  return `${judgement.model}${judgement.adapter ? ` with ${judgement.adapter}` : ""}, ${judgement.question}: ${reviews}${mass}.`;
}

function keep(asked) {
  state.history.push(asked);
  drawAnswer(asked);
  $("history-title").hidden = false;
  const said = asked.kind === "one" ? asked.body.input.query : `${asked.body.input.query.text_a} / ${asked.body.input.query.text_b}`;
  const number = asked.judgement.status !== "ok" ? null : asked.kind === "one" ? asked.judgement.expected?.toFixed(1) : asked.judgement.distribution && percent(asked.judgement.distribution.A);
  const again = made("button", { type: "button", textContent: `${number ?? asked.judgement.status}: ${said.slice(0, 80)}${said.length > 80 ? "..." : ""}` });
  again.addEventListener("click", () => { drawAnswer(asked); $("answer").focus(); });
  $("history").prepend(made("li", {}, again));
}

// --- what happens when ---
$("tab-one").addEventListener("click", () => chooseKind("one"));
$("tab-two").addEventListener("click", () => chooseKind("two"));
$("sample").addEventListener("change", (event) => useSample(event.target.value));
$("csv").addEventListener("change", (event) => { if (event.target.files[0]) useCsv(event.target.files[0]); event.target.value = ""; });
$("clear").addEventListener("click", () => { state.entries[state.kind] = []; csvProblem(""); drawEntries(); });
$("add").addEventListener("click", () => {
  if (entries().length >= MOST_SHOWN) entries().unshift(blank()); else entries().push(blank());
  drawEntries();
  $("entries").children[entries().length > MOST_SHOWN ? 0 : entries().length - 1].querySelector("textarea").focus();
});
$("question").addEventListener("change", helpQuestion);
$("key").addEventListener("change", () => learn().then(() => $("answer").replaceChildren()).catch(() => {}));
$("stop").addEventListener("click", () => state.asking?.abort());
$("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
document.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });

chooseKind("one");
learn().catch((error) => { if (error.status === 401) $("key").closest("details").open = true; }).finally(() => { document.documentElement.dataset.ready = "yes"; });
