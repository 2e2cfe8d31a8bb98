// The poset browser: the filters of the node's table, each below all that cover it.

import { ask, Trouble } from "./api.js";
import { $, debounced, h, s, say, set } from "./dom.js";
import { count, plural } from "./format.js";
import { drawing } from "./layers.js";
import { relations } from "./relations.js";

const LETTERS = 36; // of a filter in its box
const LETTER = 6.7; // pixels
const EVERY = 4000;
const LEGEND = 44; // pixels below that the drawing leaves free
const CLIENTS = "(clients)"; // as the node calls them
const READABLE = 0.62;
const AT_ONCE = 6;
const KINDS = ["equal", "covers", "coveredBy", "overlaps", "matches"];

const shortened = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

export class PosetBrowser {
  constructor() {
    this._svg = $("poset");
    this._world = s("g");
    this._svg.append(this._world);
    this._text = "";
    this._boxes = new Map();
    this._view = { x: 0, y: 0, scale: 1 };
    this._search = debounced(() => this._find(), 250);
    $("find").addEventListener("input", this._search);
    $("fit").addEventListener("click", () => this._fit());
    $("larger").addEventListener("click", () => this._zoom(1.25));
    $("smaller").addEventListener("click", () => this._zoom(0.8));
    this._svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this._zoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
    }, { passive: false });
    this._drag();
    setInterval(() => this._svg.checkVisibility() && !document.hidden && this.refresh(), EVERY);
  }

  async refresh() {
    try {
      const table = await ask("admin/table"), text = JSON.stringify(table);
      $("table-trouble").hidden = true;
      if (text === this._text) return;
      this._text = text;
      this._show(table);
    } catch (trouble) {
      $("table-trouble").hidden = false;
      say($("table-trouble"), trouble.message);
    }
  }

  _show({ nodes: listed, edges, total }) {
    const nodes = listed.map((node, id) => ({ ...node, id }));
    const grown = nodes.length !== this._boxes.size;
    this._nodes = new Map(nodes.map((node) => [node.id, node]));
    this._above = new Map(nodes.map((node) => [node.id, []]));
    this._below = new Map(nodes.map((node) => [node.id, []]));
    for (const [from, to] of edges) {
      this._below.get(from)?.push(to);
      this._above.get(to)?.push(from);
    }
    const { width, height } = this._svg.getBoundingClientRect();
    const sizes = nodes.map(({ id, filter }) => ({ id, width: 24 + shortened(filter).length * LETTER }));
    this._drawing = drawing(sizes, edges, width / Math.max(1, height - LEGEND));
    const corners = this._drawing.corners;
    this._boxes = new Map(nodes.map((node) => [node.id, this._box(node, corners.get(node.id))]));
    this._lines = this._drawing.routes.map((route) => ({
      a: route[0],
      b: route.at(-1),
      path: s("path", { class: "edge", d: curve(route.map((id) => corners.get(id))) }),
    }));
    this._world.replaceChildren(...this._lines.map((line) => line.path), ...this._boxes.values());
    const roots = nodes.filter((node) => this._above.get(node.id).length === 0).length;
    say($("table-size"), `${plural(total, "filter")}, ${plural(roots, "root")}` +
      (total > nodes.length ? `; the first ${count(nodes.length)} are drawn` : ""));
    $("no-table").hidden = nodes.length > 0;
    if (grown) this._begin();
    this._mark();
    if (this._nodes.has(this._chosen)) this._tell(this._chosen);
    if ($("find").value.trim()) this._find();
  }

  _box(node, { x, y, width, height }) {
    const show = () => this._tell(node.id);
    const reveal = () => {
      show();
      this._reveal(node.id);
    };
    return s("g", {
      class: "box", tabindex: 0, role: "button", "aria-label": node.filter, transform: `translate(${x} ${y})`,
      "data-filter": node.filter, onpointerenter: show, onfocus: reveal,
      onkeydown: (event) => this._walk(event, node.id),
    },
    s("rect", { width, height, rx: 7 }),
    s("text", { x: width / 2, y: height / 2 + 4 }, shortened(node.filter)),
    s("title", {}, node.filter));
  }

  /** Arrow keys lead to what covers a filter, what it covers, and what stands beside it. */
  _walk(event, id) {
    const corners = this._drawing.corners, here = corners.get(id);
    const beside = (side) => [...this._boxes.keys()]
      .filter((other) => corners.get(other).y === here.y && side * (corners.get(other).x - here.x) > 0)
      .sort((a, b) => side * (corners.get(a).x - corners.get(b).x));
    const ways = {
      ArrowUp: () => this._above.get(id), ArrowDown: () => this._below.get(id),
      ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
    };
    const [to] = ways[event.key]?.() ?? [];
    if (to === undefined) return;
    event.preventDefault();
    this._boxes.get(to).focus();
  }

  _reach(id, next, found = new Set()) {
    for (const other of next.get(id) ?? [])
      if (!found.has(other)) this._reach(other, next, found.add(other));
    return found;
  }

  _tell(id) {
    this._chosen = id;
    const node = this._nodes.get(id), above = this._reach(id, this._above), below = this._reach(id, this._below);
    for (const [other, box] of this._boxes) {
      box.classList.toggle("chosen", other === id);
      box.classList.toggle("near", above.has(other) || below.has(other));
    }
    const on = (end) => end === id || above.has(end) || below.has(end);
    for (const { a, b, path } of this._lines)
      path.classList.toggle("near", on(a) && on(b) && (a === id || b === id || above.has(a) === above.has(b)));
    $("filter-detail").replaceChildren(
      h("pre", { class: "code" }, node.filter),
      h("h3", {}, "Wanted by"),
      h("ul", { class: "chips" }, node.interfaces.map((name) =>
        h("li", {}, name === CLIENTS ? "clients of this node" : name))),
      h("h3", {}, "Covered by", h("b", {}, count(above.size))), this._list([...above]),
      h("h3", {}, "Covers", h("b", {}, count(below.size))), this._list([...below]));
  }

  _list(ids) {
    if (!ids.length) return h("p", { class: "hint" }, "None here.");
    return h("ul", { class: "filters" }, ids.slice(0, 40).map((id) => h("li", {},
      h("button", { class: "plain", onclick: () => this._boxes.get(id).focus() }, this._nodes.get(id).filter))));
  }

  // Searching

  async _find() {
    const text = $("find").value.trim(), asked = (this._asked = (this._asked ?? 0) + 1);
    if (!text) {
      this._found = null;
      say($("found"), "");
      this._mark();
      return;
    }
    try {
      const found = await this._relations(text);
      if (asked !== this._asked) return;
      this._found = found;
      say($("found"), found.words);
      $("found").className = "";
    } catch (trouble) {
      if (asked !== this._asked) return;
      this._found = null;
      const { problem, column } = trouble.place;
      say($("found"), problem ? `Column ${column}: ${problem}` : trouble.message);
      $("found").className = "bad";
    }
    this._mark();
  }

  async _relations(text) {
    if (text.startsWith("{")) {
      const matches = await this._matching(text);
      return { matches, words: `${matches.size} of ${plural(this._nodes.size, "filter")} match this event` };
    }
    const found = relations(await ask("admin/explain", { body: { filter: text } }));
    const { covers, coveredBy, overlaps } = found;
    return {
      ...Object.fromEntries(Object.entries(found).map(([kind, filters]) => [kind, new Set(filters)])),
      words: `covers ${covers.length}, covered by ${coveredBy.length}, overlaps ${overlaps.length}`,
    };
  }

  /** The filters that an event matches: from the roots down, and only below those that it matches. */
  async _matching(event) {
    try {
      JSON.parse(event);
    } catch (error) {
      throw new Trouble("bad", `This is no JSON yet: ${error.message}`);
    }
    const matches = new Set(), tried = new Set();
    let open = [...this._nodes.keys()].filter((id) => this._above.get(id).length === 0);
    while (open.length) {
      const some = open.splice(0, AT_ONCE).filter((id) => !tried.has(id));
      await Promise.all(some.map(async (id) => {
        tried.add(id);
        const { filter } = this._nodes.get(id);
        // The event goes as it was typed: no number loses its digits.
        const answer = await ask("admin/match", { text: `{"filter":${JSON.stringify(filter)},"event":${event}}` });
        if (!answer.matches) return;
        matches.add(filter);
        open.push(...this._below.get(id));
      }));
    }
    return matches;
  }

  _mark() {
    const found = this._found;
    this._svg.classList.toggle("searching", Boolean(found));
    for (const [id, box] of this._boxes) {
      const { filter } = this._nodes.get(id);
      for (const kind of KINDS)
        box.classList.toggle(kind, Boolean(found?.[kind]?.has(filter)));
    }
  }

  // Looking closer

  _apply() {
    const { x, y, scale } = this._view;
    set(this._world, { transform: `translate(${x} ${y}) scale(${scale})` });
  }

  /** At first all of it, if it can be read then; if not, the roots. */
  _begin() {
    this._fit();
    if (this._view.scale >= READABLE) return;
    this._view = { scale: READABLE, x: (this._svg.clientWidth - this._drawing.width * READABLE) / 2, y: 24 };
    this._apply();
  }

  /** Move what is chosen by a key to where it is seen. */
  _reveal(id) {
    const { x, y, scale } = this._view, corner = this._drawing.corners.get(id);
    const width = this._svg.clientWidth, height = this._svg.clientHeight - LEGEND;
    const left = corner.x * scale + x, top = corner.y * scale + y;
    const right = left + corner.width * scale, bottom = top + corner.height * scale;
    if (left < 0 || right > width) this._view.x += (width - left - right) / 2;
    if (top < 0 || bottom > height) this._view.y += (height - top - bottom) / 2;
    this._apply();
  }

  _fit() {
    const { width, height } = this._svg.getBoundingClientRect();
    if (!width || !this._drawing) return;
    const wide = Math.max(1, this._drawing.width), high = Math.max(1, this._drawing.height), room = height - LEGEND;
    const scale = Math.min(1.25, (width - 48) / wide, (room - 48) / high);
    this._view = { scale, x: (width - wide * scale) / 2, y: Math.max(24, (room - high * scale) / 2) };
    this._apply();
  }

  _zoom(factor, x = this._svg.clientWidth / 2, y = this._svg.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.05, this._view.scale * factor)), change = scale / this._view.scale;
    this._view = { scale, x: x - (x - this._view.x) * change, y: y - (y - this._view.y) * change };
    this._apply();
  }

  _drag() {
    let from = null;
    this._svg.addEventListener("pointerdown", ({ clientX, clientY }) => {
      from = { x: clientX - this._view.x, y: clientY - this._view.y };
    });
    addEventListener("pointermove", (event) => {
      if (!from) return;
      Object.assign(this._view, { x: event.clientX - from.x, y: event.clientY - from.y });
      this._apply();
    });
    addEventListener("pointerup", () => (from = null));
  }
}

/** From box to box, and straight through those between. */
function curve(boxes) {
  const middle = (box) => box.x + box.width / 2;
  const [first] = boxes;
  return boxes.slice(1).reduce((path, box, number) => {
    const above = boxes[number], from = above.y + above.height, half = (from + box.y) / 2;
    return `${path}V${from}C${middle(above)} ${half} ${middle(box)} ${half} ${middle(box)} ${box.y}`;
  }, `M${middle(first)} ${first.y + first.height}`);
}
