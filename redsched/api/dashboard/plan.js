// What the pages with plans share: a form that asks for one, and what is free before and after it.

import { h, number, table } from "/assets/dom.js";

/** Return a form's listener: it asks for a plan, and shows the answer in an element, or what is wrong. */
export function planned(answer, show, ask) {
  return async (event) => {
    event.preventDefault();
    show(null);
    answer.replaceChildren(h("p", { class: "faint" }, "Planning"));
    try {
      answer.replaceChildren(...(await ask()));
    } catch (error) {
      answer.replaceChildren();
      show(error);
    }
  };
}

/** Return a table of the classes of a plan. `after`: the heading of what is free then. */
export function freeTable(classes, after) {
  return table("Free", ["Class", "Capacity", "Now", after],
    classes.map((one) => [one.resource_class, number(one.capacity), number(one.free), number(one.after)]),
    { numeric: [1, 2, 3] });
}
