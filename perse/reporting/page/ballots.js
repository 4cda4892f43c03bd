// The candidates in the table, and the votes on one of them: who voted for it, in which order, and why.

const runOf = (fields) => head.runs[Number(fields.prompting.value)];
// 0% and 100% are said of none and all alone.
const percent = (value) => {
  if (value === null) return "–";
  const whole = Math.round(100 * value);
  return `${(value > 0 && whole === 0) || (value < 1 && whole === 100) ? Number((100 * value).toFixed(2)) : whole}%`;
};

const columns = [
  ["System", (sample) => make("bdi", {}, head.system[sample])],
  ["People", (sample) => number(head.people[sample])],
  ["Votes for it", (sample, fields) => percent(runOf(fields).votes[sample])],
  ["P(candidate)", (sample, fields) => number(runOf(fields).expected[sample], 3)],
  ["Score", (sample, fields) => number(runOf(fields).score[sample], 3)],
  ["Order gap", (sample, fields) => number(runOf(fields).order_gap[sample], 3)],
  ["Without a vote", (sample, fields) => runOf(fields).missing[sample] || "–"],
];

const systems = [...new Set(head.system)].sort();

function selected(fields, matches) {
  const run = runOf(fields);
  const kept = [];
  head.id.forEach((_, sample) => {
    if (matches && !matches[sample]) return;
    if (fields.system.value && head.system[sample] !== systems[Number(fields.system.value)]) return;
    if (fields.state.value === "missing" && !run.missing[sample]) return;
    if (fields.state.value === "same" && !run.same[sample]) return;
    kept.push(sample);
  });
  const orders = {
    most: [(sample) => run.expected[sample] ?? run.votes[sample], -1],
    least: [(sample) => run.expected[sample] ?? run.votes[sample], 1],
    people: [(sample) => head.people[sample], -1],
    gap: [(sample) => run.order_gap[sample], -1],
  };
  return fields.order.value ? ordered(kept, ...orders[fields.order.value]) : kept;
}

function textsOf(detail, fields) {
  const votes = detail.votes[Number(fields.prompting.value)];
  const parts = {
    candidate: () => [detail.text],
    reasons: () => votes.flatMap((vote) => [vote.reason, vote.error]),
    roles: () => votes.flatMap((vote) => [vote.role, vote.description]),
    article: () => [detail.article, ...detail.references],
  };
  const where = fields.where.value;
  return (where ? parts[where]() : Object.values(parts).flatMap((part) => part())).filter((text) => text !== null);
}

const sources = {
  static: "on every document",
  manual: "on every document",
  coarse: "invented, by occupation and intent",
  fine: "invented, by what they know",
  reader: "a real reader",
};

function voteWords(vote, many) {
  const order = vote.first ? "candidate first" : "reference first";
  const against = (many.reference ? `, reference ${vote.reference}` : "") + (many.wording ? `, wording ${vote.wording}` : "");
  if (!vote.asked) return `${order}${against}: the candidate is the reference, nobody was asked`;
  const said = vote.vote === null ? "no vote" : vote.vote ? "for the candidate ✓" : "for the reference ✗";
  const parts = [`${order}${against}: ${said}`];
  if (vote.chance !== null) parts.push(`P(candidate) ${number(vote.chance, 3)}`);
  if (vote.sure !== null) parts.push(`confidence ${number(vote.sure, 3)}`);
  return parts.join(" · ");
}

// The ballots of one role together, in the order in which the roles vote.
async function rolesOf(votes) {
  const groups = new Map();
  for (const vote of votes) {
    const key = `${vote.source} ${vote.role} ${vote.description}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(vote);
  }
  const differ = (of) => new Set(votes.map((vote) => vote[of])).size > 1;
  const many = { reference: differ("reference"), wording: differ("wording") };
  const made = [];
  for (const group of groups.values()) {
    const [first] = group;
    const name = first.role === null ? "Nobody in particular" : await textOf(first.role);
    const card = make("article", { className: "turn" }, make("h5", {}, make("bdi", {}, name)));
    if (first.description !== null) {
      card.append(make("p", { className: "about" }, `${sources[first.source] || first.source}: `, make("span", { className: "text" }, await textOf(first.description))));
    }
    for (const vote of group) {
      card.append(make("h6", {}, voteWords(vote, many)));
      if (vote.reason !== null) card.append(await words(vote.reason));
      if (vote.error !== null) card.append(because(await textOf(vote.error)));
    }
    made.push(card);
  }
  return made;
}

function choiceOf(prompting, again) {
  if (head.promptings.length < 2) return null;
  const select = make("select", { name: "shown-prompting" });
  head.promptings.forEach((name, at) => select.append(make("option", { value: String(at), selected: at === prompting }, name)));
  select.addEventListener("change", async () => {
    await again(Number(select.value));
    byId("opened").querySelector("[name=shown-prompting]").focus();
  });
  return make("p", { className: "filters" }, make("label", {}, "Prompting ", select));
}

async function contentsOf(sample, prompting, again) {
  const detail = await detailOf(sample);
  const run = head.runs[prompting];
  const votes = detail.votes[prompting];
  const card = make("article", { className: "card" }, make("h4", {}, "The candidate"));
  const told = [`${percent(run.votes[sample])} of the votes`, `P(candidate) ${number(run.expected[sample], 3)}`, `score ${number(run.score[sample], 3)}`];
  card.append(make("p", { className: "about" }, told.join(" · ")), await words(detail.text));
  const people = Object.entries(detail.people);
  if (people.length) {
    card.append(make("p", { className: "about" }, "people: ", ...people.flatMap(([name, value], at) => [at ? ", " : "", make("bdi", {}, name), ` ${number(value)}`])));
  }
  const truth = make("article", { className: "card truth" }, make("h4", {}, detail.references.length > 1 ? "References" : "The reference"));
  for (const text of detail.references) truth.append(await words(text));
  const missing = run.missing[sample] ? `, ${several(run.missing[sample], "without a vote", "without a vote")}` : "";
  return [
    make("p", { className: "about" }, "document ", make("bdi", {}, head.document[sample]), " · system ", make("bdi", {}, head.system[sample])),
    choiceOf(prompting, again),
    make("div", { className: "cards" }, card, truth),
    make("section", { className: "story", "aria-label": "Votes" }, folded(`Votes: ${several(votes.length, "ballot")}${missing}`, true, ...(await rolesOf(votes)))),
    detail.article === null ? null : folded("The article", false, await words(detail.article)),
  ].filter((part) => part !== null);
}

function setUpBallots() {
  const fields = byId("sample-filters").elements;
  offer(fields.prompting, head.promptings);
  offer(fields.system, systems);
  fields.prompting.closest("label").hidden = head.promptings.length < 2;
  setUpListing({
    columns,
    failed: (sample, given) => runOf(given).missing[sample] > 0,
    selected,
    textsOf,
    namesOf: (sample) => (fields.where.value ? [] : [head.id[sample]]),
    chosen: (given) => Number(given.prompting.value),
    contents: contentsOf,
  });
}

setUpColours();
setUpPrinting();
setUpBallots();
document.documentElement.dataset.ready = "samples";
