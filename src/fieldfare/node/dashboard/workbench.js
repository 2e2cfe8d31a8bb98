// The workbench: type a filter, see what it means here and which events match it, as they come.

import { ask } from "./api.js";
import { $, debounced, h, say } from "./dom.js";
import { count, plural, timeOfDay } from "./format.js";
import { parts } from "./json.js";
import { relations } from "./relations.js";
import { Listener } from "./socket.js";

const ROWS = 200;
const LIMIT = 100; // the node names no more of each kind
const RELATIONS = [
  ["equal", "Same as", "Filters here that match the same events"],
  ["covers", "Covers", "Filters here that match some of these events, and no others"],
  ["coveredBy", "Covered by", "Filters here that match all of these events, and others"],
  ["overlaps", "Overlaps", "Filters here that match some of these events, and others"],
];
const STATES = {
  off: "not listening", connecting: "connecting …", live: "listening", refused: "refused", lost: "connection lost",
};

export class Workbench {
  constructor() {
    this._listener = new Listener((events) => this._heard(events), (state, why) => this._told(state, why));
    this._waiting = [];
    this._count = 0;
    this._asked = 0;
    this._paused = false;
    const explain = debounced(() => this._explain(), 250);
    $("filter").addEventListener("input", explain);
    $("pause").addEventListener("click", () => this._pause(!this._paused));
    $("clear").addEventListener("click", () => this._clear());
    $("publish").addEventListener("submit", (event) => {
      event.preventDefault();
      this._publish();
    });
    $("event").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this._publish();
    });
    for (const example of document.querySelectorAll("[data-example]"))
      example.addEventListener("click", () => this.write(example.dataset.example));
    this._clear();
  }

  write(filter) {
    $("filter").value = filter;
    this._explain();
  }

  /** The token is another one now. */
  again() {
    this._listener.again();
    if ($("filter").value.trim()) this._explain();
  }

  // What the filter means

  async _explain() {
    const filter = $("filter").value, asked = ++this._asked;
    if (!filter.trim()) {
      this._listener.ask(null);
      this._show(null, null, "");
      return;
    }
    try {
      const answer = await ask("admin/explain", { body: { filter } });
      if (asked === this._asked) {
        this._show(answer, null, filter);
        if (answer.normal !== this._normal) this._clear(); // what follows matches something else
        this._normal = answer.normal;
        this._listener.ask(answer.normal);
      }
    } catch (trouble) {
      if (asked !== this._asked) return;
      this._show(null, trouble, filter);
      this._listener.ask(null);
    }
  }

  _show(answer, trouble, filter) {
    $("explained").hidden = !answer;
    $("filter-hint").hidden = Boolean(answer || trouble);
    $("filter-trouble").hidden = !trouble;
    $("filter").setAttribute("aria-invalid", String(Boolean(trouble)));
    if (trouble) $("filter-trouble").replaceChildren(...complaint(trouble, filter));
    if (!answer) return;
    const found = relations(answer);
    say($("normal"), answer.normal);
    say($("compared"), plural(answer.wanted, "filter"));
    $("relations").replaceChildren(...RELATIONS.map(([key, name, meaning]) => listed(found[key], name, meaning)));
  }

  // What matches it

  _told(state, why) {
    say($("live-state"), STATES[state]);
    $("live-state").className = `badge ${state}`;
    $("live-trouble").hidden = !why;
    say($("live-trouble"), why);
  }

  _heard(events) {
    if (!events.length) return;
    this._count += events.length;
    this._waiting.push(...events);
    if (this._waiting.length > ROWS) this._waiting.splice(0, this._waiting.length - ROWS);
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._draw();
    });
  }

  _draw() {
    say($("matched"), count(this._count));
    if (this._paused) {
      say($("pause"), `Go on (${this._waiting.length === ROWS ? `${ROWS}+` : this._waiting.length} new)`);
      return;
    }
    const rows = this._waiting.splice(0).reverse().map(row);
    $("events").prepend(...rows);
    while ($("events").childElementCount > ROWS) $("events").lastElementChild.remove();
    $("no-events").hidden = $("events").childElementCount > 0;
  }

  _pause(paused) {
    this._paused = paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    say($("pause"), paused ? "Go on" : "Pause");
    if (!paused) this._draw();
  }

  _clear() {
    this._waiting = [];
    this._count = 0;
    $("events").replaceChildren();
    $("no-events").hidden = false;
    say($("matched"), "0");
  }

  // Publishing

  async _publish() {
    const text = $("event").value;
    const said = (words, kind) => {
      say($("published"), words);
      $("published").className = kind;
    };
    try {
      JSON.parse(text);
    } catch (error) {
      said(`This is no JSON: ${error.message}`, "bad");
      return;
    }
    try {
      const { accepted, position } = await ask("events", { text });
      said(`${accepted === 1 ? "Safe" : `${accepted} events safe`}, the log ends at ${position}.`, "good");
    } catch (trouble) {
      said(trouble.message, "bad");
    }
  }
}

/** An error of a filter: what is wrong, and its line with a caret below. */
export function complaint(trouble, filter) {
  const { position, line, column, problem } = trouble.place;
  if (position === undefined) return [h("p", {}, trouble.message)];
  const written = filter.split("\n")[line - 1] ?? "";
  const cut = Math.max(0, column - 40);
  const shown = (cut ? "…" : "") + written.slice(cut, cut + 76);
  return [
    h("p", {}, h("small", {}, `Line ${line}, column ${column}: `), problem),
    h("pre", { "aria-hidden": "true" }, `${shown}\n${" ".repeat(column - 1 - cut + (cut ? 1 : 0))}`, h("b", {}, "^")),
  ];
}

function listed(filters, name, meaning) {
  const number = filters.length < LIMIT ? String(filters.length) : `${LIMIT}+`;
  if (!filters.length) return h("p", { class: "none", title: meaning }, h("span", {}, name), h("b", {}, "0"));
  return h("details", { open: filters.length <= 5, "data-relation": name },
    h("summary", { title: meaning }, h("span", {}, name), h("b", {}, number)),
    h("ul", {}, filters.map((filter) => h("li", {}, filter))));
}

function row({ time, publisher, event, position }) {
  return h("tr", {},
    h("td", { class: "when" }, timeOfDay(time)),
    h("td", { class: "who", title: publisher }, publisher),
    h("td", { class: "json", title: `position ${position}` }, [...parts(event)].map(([kind, text]) =>
      kind === "mark" ? text : h("span", { class: kind }, text))));
}
