// One zone's hosts as a canvas: squares, legible at 10,000 hosts, or names where all of them fit; with a keyboard's
// cursor and a tip.

import { amountsOf, condition, usedPart } from "/assets/fleet.js";
import { count, h, number, percent } from "/assets/dom.js";

const LARGEST = 30;
const SMALLEST = 6;
/** The height in pixels that all zones together should fit into. */
const HEIGHT = 560;
const STEPS = 5;
const FONT = "12px system-ui, sans-serif";
const PADDING = 5;
/** The widest cell in pixels: longer names are not shown. */
const WIDEST = 260;
/** From this luminance on, dark text is easier to read on a colour than light text: where both contrast alike. */
const LIGHT = 0.179;

/** Return the width and height of a cell, and whether it shows its host's name: if the map has room for all of them. */
export function cellFor(zones, width) {
  const sizes = zones.map((hosts) => hosts.length);
  const context = document.createElement("canvas").getContext("2d");
  context.font = FONT;
  const longest = zones.flat().reduce((most, { name }) => Math.max(most, context.measureText(name).width), 0);
  const wide = Math.max(LARGEST, Math.ceil(longest) + 2 * PADDING);
  if (wide <= Math.min(WIDEST, width) && heightOf(sizes, wide, LARGEST, width) <= HEIGHT) {
    return { width: wide, height: LARGEST, isNamed: true };
  }
  const side = sideFor(sizes, width);
  return { width: side, height: side, isNamed: false };
}

function heightOf(sizes, cellWidth, cellHeight, width) {
  const columns = Math.max(1, Math.floor(width / cellWidth));
  return cellHeight * sizes.reduce((sum, size) => sum + Math.ceil(size / columns), 0);
}

/** Return the side of a square for zones of these sizes, so that the map fits without scrolling far. */
function sideFor(sizes, width) {
  for (let side = LARGEST; side > SMALLEST; side -= 1) {
    if (heightOf(sizes, side, side, width) <= HEIGHT) return side;
  }
  return SMALLEST;
}

/** Return the colours of the page's theme. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    used: Array.from({ length: STEPS }, (_, step) => colour(`heat-${step}`)),
    over: colour("heat-over"),
    none: colour("heat-none"),
    closed: colour("heat-closed"),
    away: colour("heat-away"),
    ink: colour("ink"),
    cursor: colour("focus"),
  };
}

/** Return the name of a host's colour, as in the legend. */
export function colourOf(host, resource, colours) {
  const state = condition(host);
  if (["lost", "down", "unattested"].includes(state)) return colours.away;
  if (state !== "up") return colours.closed;
  const part = usedPart(host, resource);
  if (part === null) return colours.none;
  if (part > 1) return colours.over;
  return colours.used[Math.min(STEPS - 1, Math.floor(part * STEPS))];
}

/** Return what a host's square shows, as text. */
export function describe(host, resource) {
  const part = usedPart(host, resource);
  const found = resource && amountsOf(host, resource);
  const parts = [host.name, condition(host)];
  if (part !== null) parts.push(`${percent(part)} of ${resource || "its fullest class"} used`);
  if (found) parts.push(`${number(found.capacity - found.claimed - found.external)} free of ${number(found.capacity)}`);
  parts.push(count(host.claims, "claim"));
  return parts.join(", ");
}

/** Return black or white, whichever is easier to read on a colour, `#rrggbb`. */
function textOn(colour) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > LIGHT ? "#000000" : "#ffffff";
}

/** The cells of one zone. `say` gets the description of the host under the cursor or pointer. */
export class ZoneMap {
  #hosts = [];
  #resource = "";
  #cell = { width: LARGEST, height: LARGEST, isNamed: false };
  #columns = 1;
  #cursor = -1;

  constructor(zone, say) {
    this.say = say;
    this.canvas = h("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "heat map",
      "aria-label": `Hosts of ${zone}: arrow keys move from host to host, Enter opens one`,
      keydown: (event) => this.#key(event),
      focus: () => this.#move(Math.max(0, this.#cursor)), blur: () => this.#move(-1),
      mousemove: (event) => this.#point(event), mouseleave: () => this.#move(-1), click: () => this.#open(),
    });
  }

  draw(hosts, resource, cell, width, colours) {
    Object.assign(this, { colours });
    this.#hosts = hosts;
    this.#resource = resource;
    this.#cell = cell;
    this.#columns = Math.max(1, Math.floor(width / cell.width));
    this.canvas.dataset.names = cell.isNamed ? "shown" : "hidden";
    const rows = Math.max(1, Math.ceil(hosts.length / this.#columns));
    this.#resize(Math.min(hosts.length, this.#columns) * cell.width, rows * cell.height);
    this.#paint();
  }

  #resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context = this.canvas.getContext("2d");
    this.context.scale(ratio, ratio);
  }

  #paint() {
    const { width, height, isNamed } = this.#cell;
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.#hosts.forEach((host, place) => {
      const [x, y] = this.#at(place);
      const colour = colourOf(host, this.#resource, this.colours);
      this.context.fillStyle = colour;
      this.context.fillRect(x, y, width - 1, height - 1);
      if (condition(host) !== "up" && height >= 8) this.#strike(x, y, width - 1, height - 1);
      if (isNamed) this.#name(host.name, x, y, colour);
    });
    if (this.#cursor < 0) return;
    const [x, y] = this.#at(this.#cursor);
    this.context.strokeStyle = this.colours.cursor;
    this.context.lineWidth = 2;
    this.context.strokeRect(x + 1, y + 1, width - 3, height - 3);
  }

  #name(name, x, y, colour) {
    const { width, height } = this.#cell;
    this.context.font = FONT;
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.context.fillStyle = textOn(colour);
    this.context.fillText(name, x + (width - 1) / 2, y + height / 2);
  }

  /** Strike a cell through: its state must not be a matter of colour alone. */
  #strike(x, y, width, height) {
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 1;
    this.context.beginPath();
    this.context.moveTo(x + 1.5, y + height - 1.5);
    this.context.lineTo(x + width - 1.5, y + 1.5);
    this.context.stroke();
  }

  #at(place) {
    return [(place % this.#columns) * this.#cell.width, Math.floor(place / this.#columns) * this.#cell.height];
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns };
    const ends = { Home: 0, End: this.#hosts.length - 1 };
    if (event.key === "Enter") return this.#open();
    const place = ends[event.key] ?? this.#cursor + (steps[event.key] ?? NaN);
    if (Number.isNaN(place)) return;
    event.preventDefault();
    if (place >= 0 && place < this.#hosts.length) this.#move(place);
  }

  #point({ offsetX, offsetY }) {
    const column = Math.floor(offsetX / this.#cell.width);
    const place = Math.floor(offsetY / this.#cell.height) * this.#columns + column;
    this.#move(column < this.#columns && place < this.#hosts.length ? place : -1);
  }

  #move(place) {
    if (place === this.#cursor) return;
    this.#cursor = place;
    this.#paint();
    this.say(place < 0 ? "" : describe(this.#hosts[place], this.#resource));
  }

  #open() {
    const host = this.#hosts[this.#cursor];
    if (host) location.hash = `#/host/${encodeURIComponent(host.name)}`;
  }
}
