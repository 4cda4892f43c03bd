// What every part of the page uses: elements made of text, pages of a long list, colours, printing.

// Attributes are set as properties where there is one; children are elements, or texts that stay texts.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function byId(name) {
  return document.getElementById(name);
}

const counted = new Intl.NumberFormat("en").format;

function number(value, digits) {
  return value === null || value === undefined ? "–" : value.toFixed(digits === undefined ? 2 : digits);
}

function offer(select, names) {
  names.forEach((name, place) => select.append(make("option", { value: String(place) }, name)));
}

// Buttons for the pages of a list of `count` entries; `go` is told the page that was chosen.
function pager(place, count, size, page, go) {
  const pages = Math.max(1, Math.ceil(count / size));
  const before = make("button", { type: "button", disabled: page === 0 }, "Previous page");
  const after = make("button", { type: "button", disabled: page >= pages - 1 }, "Next page");
  const here = make("span", {}, `Page ${counted(page + 1)} of ${counted(pages)}`);
  const had = place.contains(document.activeElement) ? document.activeElement.textContent : null;
  before.addEventListener("click", () => go(page - 1));
  after.addEventListener("click", () => go(page + 1));
  place.replaceChildren(before, here, after);
  place.hidden = pages === 1;
  if (had) [before, after].sort((one) => (one.textContent === had ? -1 : 1)).find((button) => !button.disabled)?.focus();
}

function setUpColours() {
  const button = byId("theme");
  const names = { system: "as the system", light: "light", dark: "dark" };
  const order = Object.keys(names);
  let chosen = "system";
  const show = () => {
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Colours: ${names[chosen]}`;
  };
  button.addEventListener("click", () => {
    chosen = order[(order.indexOf(chosen) + 1) % order.length];
    show();
  });
  button.hidden = false;
  show();
}

// On paper nothing can be unfolded; what was folded before is folded again after.
function setUpPrinting() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.guide:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}
