// A question before something that changes the fleet.

import { h } from "/assets/dom.js";

/** Ask, and return whether the answer is yes. Escape is no. */
export function confirmed(title, consequence) {
  const dialog = h("dialog", { id: "confirm", "aria-labelledby": "confirm-title" },
    h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title), h("p", {}, consequence),
      h("div", { class: "bar" }, h("button", { value: "no", autofocus: true }, "Leave it"), h("button", { value: "yes", class: "main" }, "Do it"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    resolve(dialog.returnValue === "yes");
    dialog.remove();
  }));
}
