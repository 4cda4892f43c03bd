// Two texts in one: what stayed, what went and what came, as "=12-5+7" says by their lengths.

function marked(before, after, lengths) {
  const made = make("p", { className: "text", dir: "auto" });
  let old = 0;
  let fresh = 0;
  for (const [, kind, digits] of lengths.matchAll(/([=+-])(\d+)/g)) {
    const size = Number(digits);
    if (kind === "+") made.append(make("ins", {}, after.slice(fresh, fresh + size)));
    else if (kind === "-") made.append(make("del", {}, before.slice(old, old + size)));
    else made.append(before.slice(old, old + size));
    if (kind !== "+") old += size;
    if (kind !== "-") fresh += size;
  }
  return made;
}

