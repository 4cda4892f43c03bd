// One sample in a dialog, with the one before and the one after it at hand.

// `contents(sample, chosen, again)` makes what stands under the title; `again(other)` shows the same sample with something else chosen.
// `left` is called with the last sample. Returns how to open one: `shown` are the samples of the table in its order.
function opener(contents, left) {
  const dialog = byId("opened");
  let sample = 0;
  let asked = 0;

  async function fill(next, shown, chosen) {
    sample = next;
    const turn = ++asked;
    const made = await contents(sample, chosen, (other) => fill(sample, shown, other));
    if (turn !== asked) return;
    const place = shown.indexOf(sample);
    const go = (step, words) => {
      const button = make("button", { type: "button", disabled: shown[place + step] === undefined }, words);
      button.addEventListener("click", async () => {
        await fill(shown[place + step], shown, chosen);
        [...dialog.querySelectorAll("button")].find((one) => one.textContent === words && !one.disabled)?.focus();
      });
      return button;
    };
    const close = make("button", { type: "button", className: "close" }, "Close (Esc)");
    close.addEventListener("click", () => dialog.close());
    const title = make("h3", { id: "opened-title", tabIndex: -1 }, "Sample ", make("bdi", {}, head.id[sample]));
    dialog.replaceChildren(make("div", { className: "bar-top" }, title, make("div", {}, go(-1, "Previous"), go(1, "Next"), close)), ...made);
    dialog.scrollTop = 0;
  }

  dialog.addEventListener("close", () => left(sample));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return async (next, shown, chosen) => {
    await fill(next, shown, chosen);
    if (!dialog.open) dialog.showModal();
    byId("opened-title").focus();
  };
}
