// What the judges said of a sample, as numbers and words.

function readerOf(sample) {
  return head.reviewers[head.reviewer[sample]];
}

function statusOf(judge, sample) {
  const status = head.answers[judge].status[sample];
  return status === null ? "not asked" : head.statuses[status];
}

// What the judge predicts: the expected score, or the choice; the label where there is no distribution; null if not answered.
function predicted(judge, sample) {
  const answers = head.answers[judge];
  if (answers.label[sample] === null) return null;
  const value = answers.value[sample];
  if (head.pairs) return value === null || value === 0.5 ? answers.label[sample] : value > 0.5 ? "A" : "B";
  return value === null ? Number(answers.label[sample]) : value;
}

// Of a pair: "right", "wrong", "even" where it finds neither text likelier, so that its label is one of them by rule or by lot, or "none" where it did not
// answer; "unknown" where the reader's choice is.
function cameOf(judge, sample) {
  const answer = predicted(judge, sample);
  if (answer === null) return "none";
  if (head.gold[sample] === null) return "unknown";
  if (head.answers[judge].even[sample]) return "even";
  return answer === head.gold[sample] ? "right" : "wrong";
}

// Distance to the reader's score; of a pair, the probability that was not given to the reader's choice.
function errorOf(judge, sample) {
  const gold = head.gold[sample];
  const answer = predicted(judge, sample);
  if (gold === null || answer === null) return null;
  if (!head.pairs) return Math.abs(answer - gold);
  if (head.answers[judge].even[sample]) return 0.5;
  const value = head.answers[judge].value[sample];
  if (value === null) return answer === gold ? 0 : 1;
  return gold === "A" ? 1 - value : value;
}
