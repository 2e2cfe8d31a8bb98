// The patterns that stand in this node: the automaton with the instances that wait in it, and the last detections.

import { ask } from "./api.js";
import { automaton } from "./automaton.js";
import { $, h, say } from "./dom.js";
import { count, plural, timeOfDay, whole } from "./format.js";
import { parts } from "./json.js";

const EVERY = 2000;
// fields of every composite event; the others are those that the pattern selects
const OWN = new Set(["constituents", "detector", "expr", "id", "pattern", "source", "time", "ts_hi", "ts_lo", "type"]);

export class Patterns {
  constructor() {
    this._drawn = new Map();
    setInterval(() => $("patterns").checkVisibility() && !document.hidden && this.refresh(), EVERY);
  }

  async refresh() {
    try {
      this._show(await ask("admin/patterns"));
      $("patterns-trouble").hidden = true;
    } catch (trouble) {
      $("patterns-trouble").hidden = false;
      say($("patterns-trouble"), trouble.message);
    }
  }

  _show(items) {
    const before = [...this._drawn.keys()], names = items.map(({ name }) => name);
    this._drawn = new Map(names.map((name) => [name, this._drawn.get(name) ?? new Pattern(name)]));
    if (JSON.stringify(before) !== JSON.stringify(names))
      $("pattern-list").replaceChildren(...[...this._drawn.values()].map(({ element }) => element));
    for (const item of items) this._drawn.get(item.name).show(item);
    $("no-patterns").hidden = items.length > 0;
  }
}

/** One of them. The parts that did not change stay, and with them what a reader has selected or opened. */
class Pattern {
  constructor(name) {
    this._facts = h("span", { class: "hint" });
    this._text = h("pre", { class: "code" });
    this._picture = h("div", { class: "picture", tabindex: 0, role: "group", "aria-label": `Automaton of ${name}` });
    this._figures = h("div", { class: "figures" });
    this._keys = h("p", { class: "hint" });
    this._latest = h("ul", { class: "detections" });
    this._shown = {};
    this.element = h("article", { class: "pipeline pattern", "data-pattern": name, "aria-label": `Pattern ${name}` },
      h("div", { class: "row" }, h("h2", {}, name), this._facts),
      this._text, this._picture, this._figures, this._keys,
      h("h3", {}, "Last detections"), this._latest);
  }

  show(item) {
    const { text, type, named, users, states, transitions, instances, keys, latest } = item;
    say(this._text, text.trim());
    const readers = users.length ? plural(users.length, "subscription") : "no subscription";
    say(this._facts, `${named ? "of the settings" : "of its subscriptions"} · ${readers} · events of type ${type}`);
    this._once("picture", { states, transitions }, () =>
      this._picture.replaceChildren(automaton({ states, transitions }, pictured(states))));
    this._figures.replaceChildren(...figures(item));
    say(this._keys, keys.length && keys.some(({ values }) => values.length)
      ? `Waiting for ${keys.map(({ values, instances }) => `${values.join(", ")} (${instances})`).join(" · ")}${instances > sum(keys) ? " …" : ""}`
      : "");
    this._once("latest", latest.map(({ position }) => position), () =>
      this._latest.replaceChildren(...(latest.length ? latest.map(detection) : [h("li", { class: "hint" }, "None yet.")])));
  }

  /** Draw a part again only if what it shows is different. */
  _once(part, facts, draw) {
    const now = JSON.stringify(facts);
    if (this._shown[part] === now) return;
    this._shown[part] = now;
    draw();
  }
}

const sum = (keys) => keys.reduce((all, { instances }) => all + instances, 0);

const pictured = (states) =>
  states.map(({ waits, fails, open }) => `waits for ${waits}${fails ? `, ${fails} ends it` : ""}: ${open} open`).join("; ");

const figures = ({ instances, detections, last_minute, dropped, late }) =>
  [
    ["Open instances", whole(instances), "Begun, and neither detected nor failed"],
    ["Detections", count(detections), "Since the pattern stands here"],
    ["In the last minute", last_minute >= 20 ? "20 or more" : whole(last_minute), "Detections"],
    ["Dropped", whole(dropped), "Instances and ways that exceeded a limit"],
    ["Late", whole(late), "Events that came later than the pattern allows"],
  ].map(([label, value, meaning]) =>
    h("div", { class: "tile", title: meaning, "data-figure": label },
      h("span", {}, label), h("div", { class: "now" }, h("b", {}, value))));

function detection({ time, position, event }) {
  const said = Object.fromEntries(Object.entries(event).filter(([name]) => !OWN.has(name)));
  const made = event.constituents ?? [];
  return h("li", {},
    h("small", {}, `${timeOfDay(time)} · position ${position} `),
    Object.keys(said).length > 0 && json(said),
    made.length > 0 && h("details", {},
      h("summary", {}, plural(made.length, "constituent")),
      h("ol", {}, made.map(constituent))));
}

const constituent = ({ name, event, constituents }) =>
  constituents
    ? h("li", {}, h("ol", {}, constituents.map(constituent)))
    : h("li", {}, h("b", {}, name), " ", json(event));

const json = (value) =>
  h("code", { class: "json" }, [...parts(value)].map(([kind, text]) => h("span", { class: kind }, text)));
