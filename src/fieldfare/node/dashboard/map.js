// The live map: nodes, links, and dots that run along them as events and control messages do.

import { s, say, set, still } from "./dom.js";
import { count, plural, rate } from "./format.js";
import { spread } from "./spread.js";

const LARGEST = 30, SMALLEST = 9; // radius of a node
const MARGIN = { x: 90, top: 130, bottom: 120 };
const LABELLED = 150; // a link of such a length has room for its rates
const SPEED = 110; // pixels in a second
const LANE = 5; // how far from the middle of a link each direction runs
const MOST = 600; // dots
const KINDS = ["events", "tells"];

/** Dots in a second: ten times as many messages are three dots more, so that a trickle and a flood both show. */
export const density = (perSecond) => (perSecond > 0 ? Math.min(14, 0.2 + 3 * Math.log10(1 + perSecond)) : 0);

const both = (flows, kind) => flows.reduce((sum, flow) => sum + (flow?.[kind] ?? 0), 0);
const thickness = (flows) => 1.5 + Math.min(5, Math.log10(1 + both(flows, "events")));

export class OverlayMap {
  constructor(svg, choose) {
    this._svg = svg;
    this._choose = choose;
    const layers = ["links", "dots", "labels", "nodes"];
    this._layers = Object.fromEntries(layers.map((name) => [name, s("g", { class: name })]));
    svg.append(...Object.values(this._layers));
    this._places = new Map();
    this._sides = new Map();
    this._drawn = { nodes: new Map(), links: new Map() };
    this._dots = [];
    this._pool = [];
    this._shape = "";
    this._radius = LARGEST;
    new ResizeObserver(() => this._overlay && this.show(this._overlay, this._chosen)).observe(svg);
    let last = performance.now();
    const frame = (now) => {
      if (svg.checkVisibility() && !still.matches) this._move(Math.min(0.1, (now - last) / 1000));
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  show(overlay, chosen) {
    this._overlay = overlay;
    this._chosen = chosen;
    const { width, height } = this._svg.getBoundingClientRect();
    if (!width) return;
    const nodes = [...overlay.nodes.values()], links = overlay.links();
    this._arrange(nodes.map((node) => node.name).sort(), links.map((link) => link.ends), width, height);
    this._each("links", links, (link) => link.key, newLink, (link, parts) => this._drawLink(link, parts));
    this._each("nodes", nodes, (node) => node.name, (node) => this._newNode(node),
      (node, parts) => this._drawNode(node, parts));
    this._links = links;
  }

  _arrange(names, ends, width, height) {
    const shape = JSON.stringify([names, ends.map(String).sort(), Math.round(width), Math.round(height)]);
    if (shape === this._shape) return;
    this._shape = shape;
    const inner = [width - 2 * MARGIN.x, height - MARGIN.top - MARGIN.bottom];
    const { places, gap } = spread(names, ends, Math.max(60, inner[0]), Math.max(60, inner[1]), this._places);
    this._radius = Math.min(LARGEST, Math.max(SMALLEST, gap * 0.27));
    for (const place of places.values()) {
      place.x += MARGIN.x;
      place.y += MARGIN.top;
    }
    this._places = places;
    this._sides = new Map(names.map((name) => [name, freeSide(name, ends, places)]));
    this._svg.classList.toggle("compact", this._radius < 24);
    this._svg.classList.toggle("tiny", this._radius < 13);
    for (const dot of this._dots.splice(0)) this._rest(dot);
    set(this._svg, { viewBox: `0 0 ${width} ${height}` });
  }

  /** Draw each of some things, make what is new, and take away what is gone. */
  _each(layer, things, key, made, draw) {
    const drawn = this._drawn[layer], gone = new Set(drawn.keys());
    for (const thing of things) {
      const name = key(thing);
      gone.delete(name);
      if (!drawn.has(name)) {
        drawn.set(name, made(thing));
        this._layers[layer].append(drawn.get(name).group);
        if (drawn.get(name).label) this._layers.labels.append(drawn.get(name).label);
      }
      draw(thing, drawn.get(name));
    }
    for (const name of gone) {
      drawn.get(name).group.remove();
      drawn.get(name).label?.remove();
      drawn.delete(name);
    }
  }

  _drawLink(link, { group, line, label, lines }) {
    const [a, b] = link.ends.map((name) => this._places.get(name));
    set(line, { x1: a.x, y1: a.y, x2: b.x, y2: b.y, "stroke-width": thickness(link.flows) });
    set(group, { class: link.up ? "link" : "link down" });
    const tells = both(link.flows, "tells"), waiting = link.outbox[0] + link.outbox[1];
    say(lines[0], link.up ? `${rate(both(link.flows, "events"))} events/s` : "link down");
    say(lines[1], !link.up ? `${count(waiting)} waiting` : tells > 0.05 ? `${rate(tells)} control/s` : "");
    // The label stands beside the link, on the upper side.
    const dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy) || 1;
    const side = dx >= 0 ? 1 : -1, away = { x: (side * dy) / length, y: (-side * dx) / length };
    const anchor = Math.abs(away.x) < 0.2 ? "middle" : away.x > 0 ? "start" : "end";
    const x = (a.x + b.x) / 2 + away.x * 14, y = (a.y + b.y) / 2 + away.y * 14 - 14 * Math.abs(away.y) + 4;
    const visibility = length < LABELLED ? "hidden" : "visible";
    set(label, { x, y, visibility, "text-anchor": anchor, class: link.up ? "" : "down" });
    for (const part of lines) set(part, { x });
  }

  _newNode(node) {
    const parts = {
      ring: s("circle", { class: "ring" }),
      disc: s("circle", { class: "disc" }),
      busy: s("circle", { class: "busy", pathLength: 100, transform: "rotate(-90)" }),
      value: s("text", { class: "value" }),
      unit: s("text", { class: "unit", y: 16 }),
      name: s("text", { class: "name" }),
      note: s("text", { class: "note" }),
    };
    const choose = () => this._choose(node.name);
    parts.group = s("g", {
      class: "node", tabindex: 0, role: "button", "data-node": node.name, onclick: choose,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    }, ...Object.values(parts));
    return parts;
  }

  _drawNode(node, parts) {
    const place = this._places.get(node.name), { overview, now, state } = node;
    const chosen = node.name === this._chosen, here = node.name === this._overlay.self;
    set(parts.group, {
      transform: `translate(${place.x} ${place.y})`,
      class: ["node", state, chosen && "chosen", here && "here"].filter(Boolean).join(" "),
      "aria-pressed": String(chosen),
    });
    const lost = state === "unreachable";
    say(parts.value, lost ? "?" : rate(now?.handled));
    say(parts.unit, lost ? "" : "events/s");
    say(parts.name, node.name);
    const note = lost
      ? "unreachable"
      : overview ? `${plural(overview.sessions, "session")} · ${plural(overview.subscriptions, "filter")}` : "…";
    say(parts.note, note);
    const r = this._radius, { x, y, anchor } = SIDES[this._sides.get(node.name)].place(r);
    set(parts.ring, { r: r + 6 });
    set(parts.disc, { r });
    set(parts.busy, { r });
    set(parts.value, { y: r < 24 || lost ? 4 : 2, "font-size": Math.max(9, r / 2) });
    set(parts.name, { x, y, "text-anchor": anchor });
    set(parts.note, { x, y: y + 17, "text-anchor": anchor });
    set(parts.busy, { "stroke-dasharray": `${Math.min(100, (now?.busy ?? 0) * 100).toFixed(1)} 100` });
    set(parts.group, { "aria-label": `${node.name}, ${note}${now ? `, ${rate(now.handled)} events a second` : ""}` });
  }

  // Dots

  _move(seconds) {
    for (const link of this._links ?? []) if (link.up) this._send(link, seconds);
    for (let number = this._dots.length - 1; number >= 0; number--) {
      const dot = this._dots[number];
      dot.way += (SPEED * seconds) / dot.length;
      if (dot.way < 1) {
        dot.circle.setAttribute("cx", (dot.from.x + dot.dx * dot.way).toFixed(1));
        dot.circle.setAttribute("cy", (dot.from.y + dot.dy * dot.way).toFixed(1));
      } else {
        this._rest(dot);
        this._dots[number] = this._dots.at(-1);
        this._dots.pop();
      }
    }
  }

  /** Send off dots, by chance, as many as the flow asks for. */
  _send(link, seconds) {
    for (const [from, flow] of link.flows.entries())
      for (const kind of flow && this._dots.length < MOST ? KINDS : [])
        if (Math.random() < density(flow[kind]) * seconds) this._dot(link, from, kind);
  }

  _dot(link, from, kind) {
    const a = this._places.get(link.ends[from]), b = this._places.get(link.ends[1 - from]);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const aside = { x: (-(b.y - a.y) / length) * LANE, y: ((b.x - a.x) / length) * LANE };
    const circle = this._pool.pop() ?? s("circle");
    set(circle, { r: kind === "events" ? 3.5 : 3, class: kind });
    if (!circle.isConnected) this._layers.dots.append(circle);
    const start = { x: a.x + aside.x, y: a.y + aside.y };
    this._dots.push({ circle, length, from: start, dx: b.x - a.x, dy: b.y - a.y, way: this._radius / length });
  }

  _rest(dot) {
    dot.circle.setAttribute("r", 0);
    this._pool.push(dot.circle);
  }
}

// Where the name of a node may stand, the best side first: its angle, and its place.
const SIDES = [
  { angle: Math.PI / 2, place: (r) => ({ x: 0, y: r + 10 + r / 2, anchor: "middle" }) },
  { angle: -Math.PI / 2, place: (r) => ({ x: 0, y: -r - (r < 24 ? 12 : 28), anchor: "middle" }) },
  { angle: 0, place: (r) => ({ x: r + 13, y: r < 24 ? 4 : -2, anchor: "start" }) },
  { angle: Math.PI, place: (r) => ({ x: -r - 13, y: r < 24 ? 4 : -2, anchor: "end" }) },
];
const CLEAR = 0.95; // radians from a link

/** The first side that no link of a node leaves from, or the one that is farthest from them all. */
function freeSide(name, links, places) {
  const here = places.get(name);
  const angles = links.filter((ends) => ends.includes(name)).map(([a, b]) => {
    const other = places.get(a === name ? b : a);
    return Math.atan2(other.y - here.y, other.x - here.x);
  });
  const between = (a, b) => Math.abs(Math.atan2(Math.sin(a - b), Math.cos(a - b)));
  const room = SIDES.map(({ angle }) => Math.min(Math.PI, ...angles.map((other) => between(angle, other))));
  const clear = room.findIndex((angle) => angle > CLEAR);
  return clear >= 0 ? clear : room.indexOf(Math.max(...room));
}

function newLink() {
  const line = s("line"), lines = [s("tspan"), s("tspan", { dy: 14, class: "tells" })];
  return { group: s("g", {}, line), line, lines, label: s("text", {}, lines) };
}
