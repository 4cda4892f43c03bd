// One sample, opened: the new text, what the reader said, what each judge said, and the profile that the judges were shown, or one of them.

async function captioned(parts) {
  const made = [];
  for (const [caption, text] of parts) {
    made.push(make("h5", {}, caption), make("p", { className: "text" }, await textOf(text)));
  }
  return made;
}

function bars(shares, gold, label) {
  const body = make("tbody");
  shares.forEach((share, place) => {
    const name = head.labels[place];
    const marks = [];
    if (String(gold) === name) marks.push("reader");
    if (label === name) marks.push("given");
    const bar = make("span", { className: String(gold) === name ? "bar true" : "bar" });
    bar.style.width = `${(100 * share).toFixed(1)}%`;
    const track = make("td", { className: "track" }, bar);
    const share100 = make("td", { className: "number" }, `${(100 * share).toFixed(1)}%`);
    body.append(make("tr", {}, make("th", { scope: "row" }, name), track, share100, make("td", {}, marks.join(", "))));
  });
  const columns = ["label", "bar", "probability", "mark"].map((name) => make("th", { scope: "col" }, name));
  const header = make("thead", { className: "hidden" }, make("tr", {}, ...columns));
  return make("table", { className: "bars" }, make("caption", {}, "Probability of each answer"), header, body);
}

function numbersOf(judge, sample, answer) {
  const made = [`status: ${statusOf(judge, sample)}`];
  const value = head.answers[judge].value[sample];
  const label = head.answers[judge].label[sample];
  if (label !== null) made.push(`answer given: ${label}`);
  if (value !== null) made.push(head.pairs ? `probability of A: ${number(value, 3)}` : `expected: ${number(value)}`);
  const error = errorOf(judge, sample);
  if (error !== null) {
    made.push(head.pairs ? { even: "neither text likelier" }[cameOf(judge, sample)] || cameOf(judge, sample) : `error: ${number(error)}`);
  }
  if (answer.gap !== null) made.push(`order gap: ${number(answer.gap, 3)}`);
  return made.join(" · ");
}

async function answerOf(judge, sample, answer, same) {
  const card = make("article", { className: "card" }, make("h4", {}, head.judges[judge]));
  if (!answer) {
    card.append(make("p", {}, "This judge was not asked."));
    return card;
  }
  card.append(make("p", { className: "about" }, numbersOf(judge, sample, answer)));
  if (answer.error !== null) card.append(make("p", { className: "text error" }, await textOf(answer.error)));
  if (answer.text !== null) {
    card.append(make("h5", {}, "What it wrote"), make("p", { className: "text" }, await textOf(answer.text)));
  }
  if (answer.shares) card.append(bars(answer.shares, head.gold[sample], head.answers[judge].label[sample]));
  const [prompt, cached, generated] = answer.tokens;
  const spent = [`${counted(prompt)} prompt tokens (${counted(cached)} cached)`, `${counted(generated)} written`];
  spent.push(same ? `${answer.k} profile entries fitted` : `other profile, of which ${answer.k} entries fitted`);
  if (answer.mass !== null) spent.push(`probability of any label: ${number(answer.mass, 3)}`);
  if (answer.finish) spent.push(`ended by: ${answer.finish}`);
  card.append(make("p", { className: "about" }, spent.join(" · ")));
  return card;
}

// Whose profile it is, where judges were shown different ones.
function shownTo(detail) {
  const asked = [...detail.answers.keys()].filter((judge) => detail.answers[judge]);
  if (asked.every((judge) => detail.same[judge])) return "the judge";
  return asked.filter((judge) => detail.same[judge]).map((judge) => head.judges[judge]).join(", ") || "none of the judges";
}

// What the dialog shows of a sample; `judge` is the one that stands first.
async function contentsOf(sample, judge) {
  const detail = await detailOf(sample);
  const about = [`reader ${readerOf(sample)}`, head.pairs && head.aspects[head.aspect[sample]], detail.item && `text ${detail.item}`];
  const gold = head.gold[sample];
  const truth = make("article", { className: "card truth" }, make("h4", {}, "The reader"));
  const said = gold === null ? "what the reader said is not known" : head.pairs ? `chose ${gold}` : `score: ${gold}`;
  truth.append(make("p", { className: "about" }, said));
  if (detail.review !== null) {
    truth.append(make("h5", {}, "What the reader wrote"), make("p", { className: "text" }, await textOf(detail.review)));
  }
  const order = [judge, ...head.judges.keys()].filter((one, at, all) => all.indexOf(one) === at);
  const cards = [truth];
  for (const one of order) cards.push(await answerOf(one, sample, detail.answers[one], detail.same[one]));
  const past = [];
  for (const [at, entry] of detail.profile.entries()) {
    const name = `${at + 1}${entry.about ? `: ${entry.about}` : ""}`;
    past.push(make("article", { className: "past" }, make("h4", {}, name), ...(await captioned(entry.parts))));
  }
  const whose = `Profile: ${past.length} for ${shownTo(detail)}; the cards say how many fitted`;
  return [
    make("p", { className: "about" }, about.filter(Boolean).join(" · ")),
    make("section", { className: "query" }, ...(await captioned(detail.query))),
    make("div", { className: "cards" }, ...cards),
    make("details", { open: true }, make("summary", {}, whose), ...past),
  ];
}
