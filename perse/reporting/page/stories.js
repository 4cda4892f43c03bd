// The stories in the table: columns, filters and where a search looks; all of one method, perhaps minus another.

const averageOf = (method, sample) => head.runs[method].average[sample];

function differenceOf(fields, sample) {
  if (fields.minus.value === "") return null;
  const [one, other] = [fields.method, fields.minus].map((field) => averageOf(Number(field.value), sample));
  return one === null || other === null ? null : one - other;
}

function signed(value) {
  return value === null ? "–" : `${value > 0 ? "+" : ""}${number(value, 1)}`;
}

function playedWords(run, sample) {
  if (run.rounds[sample] !== null) return `${counted(run.stood[sample])} of ${several(run.rounds[sample], "round")} stood`;
  const responses = run.turns[sample];
  if (responses === null) return "–";
  if (run.passed[sample] === null) return "unsupervised";
  return `${run.passed[sample] ? "passed" : "not passed"}, ${several(responses, "response")}`;
}

const columns = [
  ["Reader", (sample) => make("bdi", {}, head.reader[sample])],
  ["Category", (sample) => make("bdi", {}, head.category[sample])],
  ["Class", (sample) => head.group[sample]],
  ["Average", (sample, fields) => number(averageOf(Number(fields.method.value), sample), 1)],
  ["Difference", (sample, fields) => signed(differenceOf(fields, sample))],
  ["User", (sample, fields) => number(head.runs[Number(fields.method.value)].user[sample], 1)],
  ["Suggestions", (sample, fields) => playedWords(head.runs[Number(fields.method.value)], sample)],
  ["Version kept", (sample, fields) => head.runs[Number(fields.method.value)].kept[sample] ?? "–"],
];

const categories = [...new Set(head.category)].sort();
const groups = [...new Set(head.group)];

function selected(fields, matches) {
  const method = Number(fields.method.value);
  const run = head.runs[method];
  const reader = fields.reader.value.trim().toLowerCase();
  const kept = [];
  head.id.forEach((_, sample) => {
    if (matches && !matches[sample]) return;
    if (fields.category.value && head.category[sample] !== categories[Number(fields.category.value)]) return;
    if (fields.group.value && head.group[sample] !== groups[Number(fields.group.value)]) return;
    if (!head.reader[sample].toLowerCase().includes(reader)) return;
    if (fields.passed.value && run.passed[sample] !== (fields.passed.value === "yes")) return;
    const state = !run.summary[sample] ? "none" : run.average[sample] === null ? "unscored" : "scored";
    if (fields.state.value && fields.state.value !== state) return;
    kept.push(sample);
  });
  const orders = {
    high: [(sample) => run.average[sample], -1],
    low: [(sample) => run.average[sample], 1],
    more: [(sample) => differenceOf(fields, sample), -1],
    less: [(sample) => differenceOf(fields, sample), 1],
    long: [(sample) => run.rounds[sample] ?? run.turns[sample], -1],
  };
  return fields.order.value ? ordered(kept, ...orders[fields.order.value]) : kept;
}

const ofResponse = (turn) => (turn.response || []).map(([text]) => text);
const ofPlayed = (played) => played.turns.flatMap((turn) => [turn.failed, ...ofResponse(turn)]);
const ofSupervisor = (played) => played.turns.flatMap((turn) => (turn.verdict ? [turn.verdict.thought, turn.verdict.recommendations] : []));

// The texts of one method's story, and the reviews.
function textsOf(detail, fields) {
  const trace = detail.traces[Number(fields.method.value)];
  const played = trace ? [...trace.practice, ...(trace.suggestions ? [trace.suggestions] : [])] : [];
  const versions = trace ? [...trace.versions, ...trace.rounds] : [];
  const parts = {
    summaries: () => (trace ? [trace.summary, trace.general, trace.failed, ...versions.flatMap((one) => [one.summary, one.failed])] : []),
    suggestions: () => (trace ? [trace.analysis, ...played.flatMap(ofPlayed), ...trace.rounds.flatMap(ofResponse)] : []),
    supervisor: () => played.flatMap(ofSupervisor),
    reviews: () => [detail.own, ...detail.product, ...detail.history].map((review) => review.text),
  };
  const where = fields.where.value;
  return (where ? parts[where]() : Object.values(parts).flatMap((part) => part())).filter((text) => text !== null);
}

function setUpStories() {
  const fields = byId("sample-filters").elements;
  const names = head.methods.map((method) => method.name);
  offer(fields.method, names);
  offer(fields.minus, names);
  offer(fields.category, categories);
  offer(fields.group, groups);
  fields.method.options[names.length - 1].defaultSelected = true; // the one with the most parts, also after "Show all"
  fields.method.value = String(names.length - 1);
  const ofDifferences = [...fields.order.options].filter((option) => ["more", "less"].includes(option.value));
  const withDifference = () => {
    for (const option of ofDifferences) option.disabled = fields.minus.value === "";
    if (fields.order.selectedOptions[0]?.disabled) fields.order.value = "";
  };
  fields.minus.addEventListener("input", withDifference); // before the table is drawn anew
  withDifference();
  setUpListing({
    columns,
    failed: (sample, given) => averageOf(Number(given.method.value), sample) === null,
    selected,
    textsOf,
    namesOf: (sample) => (fields.where.value ? [] : [head.id[sample], head.reader[sample], head.item[sample]]),
    chosen: (given) => Number(given.method.value),
    contents: contentsOf,
  });
}

setUpColours();
setUpPrinting();
setUpStories();
document.documentElement.dataset.ready = "samples";
