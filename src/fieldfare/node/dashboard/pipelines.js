// Spark pipelines that report to this node: what goes through them, and what the events are like.

import { ask } from "./api.js";
import { $, h, s, say } from "./dom.js";
import { count, lasting, percent, plural, rate, taking } from "./format.js";
import { parts } from "./json.js";
import { drawSparkline, sparkline } from "./spark.js";

const EVERY = 2000;
const PATIENCE = 30; // seconds, beyond two batches, after which a pipeline that should report is silent

// name, key of the report, how to write it, what it means
const FIGURES = [
  ["Events", "events", count, "Events that were read"],
  ["Deliveries", "deliveries", count, "Events times the subscriptions that they match"],
  ["Quarantined", "quarantined", count, "Records that were no events; they are kept with the reason"],
  ["Late", "late", count, "Events that came behind the watermark"],
  ["Events/s", "rate", rate, "Over the last batch"],
  ["Last batch", "took", taking, "How long it took"],
  ["Snapshot", "snapshot", (version) => (version == null ? "–" : `v${version}`), "Version of the subscriptions"],
  ["Subscriptions", "subscriptions", count, "In this snapshot"],
];
const CURVES = [["Events/s", "events", "events"], ["Deliveries/s", "deliveries", "tells"]];

export class Pipelines {
  constructor() {
    this._drawn = new Map();
    setInterval(() => $("pipelines").checkVisibility() && !document.hidden && this.refresh(), EVERY);
  }

  async refresh() {
    try {
      this._show(await ask("admin/pipelines"));
      $("pipelines-trouble").hidden = true;
    } catch (trouble) {
      $("pipelines-trouble").hidden = false;
      say($("pipelines-trouble"), trouble.message);
    }
  }

  _show(items) {
    const before = [...this._drawn.keys()], names = items.map(({ report }) => report.name);
    this._drawn = new Map(names.map((name) => [name, this._drawn.get(name) ?? new Pipeline(name)]));
    if (JSON.stringify(before) !== JSON.stringify(names))
      $("pipeline-list").replaceChildren(...[...this._drawn.values()].map(({ element }) => element));
    for (const { age, report } of items) this._drawn.get(report.name).show(report, age);
    $("no-pipelines").hidden = items.length > 0;
  }
}

/** One of them. It stays and changes, so that what a reader has selected or scrolled to stays, too. */
class Pipeline {
  constructor(name) {
    this._state = h("span", { class: "badge" });
    this._facts = h("span", { class: "hint" });
    this._error = h("p", { class: "trouble", hidden: true });
    this._figures = FIGURES.map(([label, key, write, meaning]) => {
      const value = h("b");
      const tile = h("div", { class: "tile", title: meaning, "data-figure": key },
        h("span", {}, label), h("div", { class: "now" }, value));
      return { key, write, value, tile };
    });
    this._curves = CURVES.map(([label, key, kind]) => {
      const spark = sparkline(), top = h("small");
      const tile = h("div", { class: `tile curve ${kind}`, title: "Batch by batch", "data-curve": key },
        h("div", { class: "now" }, h("small", {}, label), top), spark.svg);
      return { key, spark, top, tile };
    });
    this._shares = h("div", { class: "shares" });
    this._shown = "";
    this.element = h("article", { class: "pipeline", "data-pipeline": name, "aria-label": name },
      h("div", { class: "row" }, h("h2", {}, name), this._state, this._facts),
      this._error,
      h("div", { class: "figures" }, [...this._figures, ...this._curves].map(({ tile }) => tile)),
      this._shares);
  }

  show(report, age) {
    const alive = ["running", "waiting"].includes(report.state);
    const stale = alive && age > PATIENCE + 2 * report.took;
    this.element.classList.toggle("stale", stale);
    this._state.className = `badge ${stale ? "stale" : report.state}`;
    say(this._state, stale ? "stale" : report.state);
    say(this._facts, `batch ${report.batch} · ` + (stale
      ? `was ${report.state}, but nothing came for ${lasting(age)}: has it stopped?`
      : `reported ${lasting(age)} ago`));
    this._error.hidden = !report.error;
    say(this._error, report.error ?? "");
    const written = JSON.stringify(report);
    if (written === this._shown) return;
    this._shown = written;
    this._draw(report);
  }

  _draw(report) {
    for (const { key, write, value } of this._figures) {
      say(value, write(report[key]));
      value.classList.toggle("bad", key === "quarantined" && report.quarantined > 0);
    }
    const history = report.history.map(([time, events, deliveries]) => ({ at: time * 1000, events, deliveries }));
    const first = history.at(0)?.at ?? 0, last = history.at(-1)?.at ?? 0, span = Math.max(1, (last - first) / 1000);
    for (const { key, spark, top } of this._curves) {
      const most = Math.max(0, ...history.map((sample) => sample[key]));
      say(top, history.length > 1 ? `max ${rate(most)} in the last ${lasting(span)}` : "");
      drawSparkline(spark, history, key, last, span);
    }
    this._shares.replaceChildren(
      h("section", {}, h("h3", {}, "Busiest subscriptions"), busiest(report.busiest)),
      h("section", {}, h("h3", {}, "Fields", h("b", {}, String(report.fields.length))),
        report.fields.length
          ? h("div", { class: "fields" }, report.fields.map(field))
          : h("p", { class: "hint" }, "No statistics yet.")));
  }
}

const busiest = (some) =>
  some.length
    ? bars(some.map(({ subscription, owner, count }) =>
        [h("span", {}, subscription, owner && h("small", {}, ` ${owner}`)), count]))
    : h("p", { class: "hint" }, "Nothing has matched yet.");

function field({ name, kinds, present, distinct, low, high, top, histogram }) {
  const all = Object.values(kinds).reduce((sum, number) => sum + number, 0) || 1;
  const several = Object.keys(kinds).length > 1;
  const mixed = Object.entries(kinds).sort(([, a], [, b]) => b - a)
    .map(([kind, number]) => (several ? `${kind} ${percent(number / all)}` : kind));
  return h("article", { class: "field", "data-field": name, "aria-label": name },
    h("h4", {}, name),
    h("p", { class: "hint" }, mixed.join(" · ") || "no values"),
    h("p", { class: "hint" }, `in ${percent(present)} of events · ${count(distinct)} distinct`),
    low !== null && h("p", {}, shown(low), " to ", shown(high)),
    curve(histogram),
    bars(top.map(([value, number]) => [shown(value), number])));
}

/** A value as it would be written in an event. */
const shown = (value) =>
  h("code", { class: "json" }, [...parts(value)].map(([kind, text]) => h("span", { class: kind }, text)));

/** Rows of [element, number], each with a bar as long as its number is large. */
function bars(rows) {
  const most = Math.max(1, ...rows.map(([, number]) => number));
  return h("ul", { class: "bars" }, rows.map(([label, number]) =>
    h("li", {},
      h("div", { class: "row" }, label, h("b", {}, count(number))),
      s("svg", { class: "bar", "aria-hidden": "true" },
        s("rect", { width: `${((100 * number) / most).toFixed(1)}%`, height: "100%", rx: 2 })))));
}

const WIDTH = 100, HEIGHT = 40;

/** A histogram: the area of a bar is its count, however wide it is. */
function curve(bins) {
  const from = Math.min(...bins.map(([low]) => low)), to = Math.max(...bins.map(([, high]) => high));
  const span = to - from;
  if (!(span > 0 && span < Infinity)) return null;
  const boxes = bins.map(([low, high, number]) => {
    const wide = Math.max((high - low) / span, 0.005);
    return { low, high, number, wide, dense: number / wide };
  });
  const top = Math.max(...boxes.map(({ dense }) => dense)) || 1;
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" };
  return s("svg", { class: "histogram", ...box, "aria-label": `Histogram from ${from} to ${to}` },
    boxes.map(({ low, high, number, wide, dense }) => {
      const x = (WIDTH * (low - from)) / span, tall = (HEIGHT * dense) / top;
      return s("rect", { x, y: HEIGHT - tall, width: Math.max(WIDTH * wide - 0.4, 0.2), height: tall },
        s("title", {}, `${low} to ${high}: ${plural(number, "event")}`));
    }));
}
