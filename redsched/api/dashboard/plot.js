// A plot of a few lines over time, as SVG, with the same numbers as a table.

import { h, table } from "/assets/dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 600;
const HEIGHT = 120;
const STYLES = ["line-0", "line-1"];
const ROWS = 10;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Return a figure. `points`: `{ at, values }`, oldest first; a value may be null. `names`: of the values. */
export function plot(title, names, points, format) {
  const values = points.flatMap((one) => one.values).filter((value) => value !== null);
  const most = Math.max(...values, 0);
  const x = (place) => (place / Math.max(1, points.length - 1)) * WIDTH;
  const y = (value) => HEIGHT - (most ? value / most : 0) * (HEIGHT - 4) - 2;
  const lines = names.map((_, number) => svg("path", { class: STYLES[number], d: outline(points, number, x, y) }));
  const about = h("span", { class: "faint" }, `up to ${shown(values.length ? most : null, format)}`);
  const latest = names.map((name, number) => `${name} ${shown(points.at(-1)?.values[number] ?? null, format)}`);
  const rows = points.slice(-ROWS).reverse().map((one) => [new Date(one.at).toLocaleTimeString(), ...one.values.map((value) => shown(value, format))]);
  return h("figure", { class: "plot" },
    h("figcaption", {}, h("strong", {}, title), `: ${latest.join(", ")}, `, about),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines),
    h("details", {}, h("summary", {}, "As a table"), table(title, ["Time", ...names], rows)));
}

function outline(points, number, x, y) {
  let isOn = false;
  return points.map(({ values }, place) => {
    const value = values[number];
    if (value === null) {
      isOn = false;
      return "";
    }
    const step = isOn ? `L${x(place).toFixed(1)} ${y(value).toFixed(1)}` : `M${x(place).toFixed(1)} ${y(value).toFixed(1)}h1`;
    isOn = true;
    return step;
  }).join("");
}

function shown(value, format) {
  return value === null ? "none" : format(value);
}
