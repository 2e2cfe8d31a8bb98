// The side panel: the figures of one node.

import { $, h, say } from "./dom.js";
import { bytes, count, lasting, percent, rate, taking } from "./format.js";
import { SPAN, origin } from "./overlay.js";
import { drawSparkline, sparkline } from "./spark.js";

const perSecond = (value) => (value == null ? "–" : `${rate(value)}\u2009/s`);

// name, key of the history, how to write it, what it means
const CURVES = [
  ["Published here", "published", perSecond, "Events from publishers of this node"],
  ["From neighbours", "arrived", perSecond, "Events that came on links"],
  ["Delivered", "delivered", perSecond, "Deliveries to sessions of this node"],
  ["Forwarded", "forwarded", perSecond, "Events that went out on links"],
  ["Control messages", "told", perSecond, "Subscriptions and advertisements told on links, both ways", "tells"],
  ["Cost per event", "cost", taking, "Working time of the broker for an event: matching, routing, queues"],
  ["Broker busy", "busy", percent, "Share of the time in which the broker works"],
  ["Waiting for sessions", "waiting", count, "Events that sessions of this node have not acknowledged"],
];

const FACTS = [
  ["Filters", (o) => count(o.subscriptions)],
  ["Table entries", (o) => count(o.table)],
  ["Sessions", (o) => `${count(o.sessions)} (${count(o.here)} here)`],
  ["Waiting on links", (_, node) => count(node.now?.outbox)],
  ["Log", (o) => `${bytes(o.log?.bytes)}, ${count(Math.max(0, (o.log?.last ?? 0) - (o.log?.first ?? 1) + 1))} events`],
  ["Memory", (o) => bytes(o.memory)],
  ["Refused", (o) => count(o.traffic.refused)],
  ["Webhooks", (o) => count(o.webhooks)],
  ["Strategy", (o) => o.strategy],
  ["Channels", (o) => o.channels?.map((one) => `${one.type}: ${one.count === null ? `by ${one.home}` : count(one.count)}${one.open ? "" : ", waits"}${one.target ? `, goes to ${one.target}` : ""}`).join("; ")],
  ["Tree for tags", (o) => o.prefix?.trees.map((tree) => `${count(tree.nodes)} nodes, by ${tree.optimizer || "nobody yet"}`).join("; ")],
  ["Forwarded by tag", (o) => o.prefix && `${count(o.prefix.by_tag)} of ${count(o.prefix.by_tag + o.prefix.by_content)}`],
  ["Up for", (o) => lasting(o.uptime)],
  ["Version", (o) => o.version],
];

export class Panel {
  constructor() {
    this._curves = CURVES.map(([label, key, write, meaning, kind = "events"]) => {
      const spark = sparkline(), value = h("b"), top = h("small");
      const tile = h("div", { class: `tile ${kind}`, title: meaning, "data-figure": key },
        h("span", {}, label), h("div", { class: "now" }, value, top), spark.svg);
      return { key, write, spark, value, top, tile };
    });
    this._facts = FACTS.map(([label, write]) => ({ write, label, value: h("dd") }));
    $("tiles").append(...this._curves.map((curve) => curve.tile));
    $("facts").append(...this._facts.flatMap(({ label, value }) => [h("dt", {}, label), value]));
  }

  show(overlay, name) {
    const node = overlay.nodes.get(name);
    $("panel").hidden = !node;
    if (!node) return;
    say($("node-name"), node.name);
    say($("node-state"), node.name === overlay.self && node.state === "up" ? "this node" : WORDS[node.state]);
    $("node-state").className = `badge ${node.state}`;
    this._address(node, overlay);
    $("node-trouble").hidden = !node.trouble;
    say($("node-trouble"), node.trouble?.message ?? "");
    $("node-figures").hidden = !node.overview;
    if (!node.overview) return;
    const span = Math.min(SPAN, Math.max(20, (performance.now() - (node.history[0]?.at ?? 0)) / 1000));
    say($("span"), `Curves: the last ${lasting(span)}`);
    for (const { key, write, spark, value, top } of this._curves) {
      say(value, write(node.now?.[key]));
      const most = Math.max(...node.history.map((sample) => sample[key] ?? 0));
      say(top, node.history.length > 1 ? `max ${write(most)}` : "");
      drawSparkline(spark, node.history, key, performance.now(), span);
    }
    for (const { write, value } of this._facts) say(value, write(node.overview, node) ?? "–");
    this._links(node);
  }

  _address(node, overlay) {
    const link = $("node-url"), at = origin(node, overlay.self);
    say(link, node.url || "address unknown");
    if (at && node.name !== overlay.self) {
      link.href = new URL("dashboard/", at);
      link.title = "Open its own dashboard";
    } else link.removeAttribute("href");
  }

  _links(node) {
    $("node-links").replaceChildren(...node.overview.links.map((link) => {
      const flow = node.flows.get(link.name) ?? {};
      const state = node.state !== "up" ? "away" : link.up ? "up" : "down";
      return h("tr", {},
        h("th", { scope: "row" }, h("i", { class: `dot ${state}` }), link.name,
          link.role !== "peer" && h("small", {}, ` ${link.role}`)),
        link.up ? h("td", {}, rate(flow.events_out)) : h("td", { class: "bad", colspan: 4 }, "down"),
        link.up && h("td", {}, rate(flow.events_in)),
        link.up && h("td", {}, rate(flow.tells_out == null ? null : flow.tells_out + flow.tells_in)),
        link.up && h("td", {}, flow.bytes_out == null ? "–" : bytes(Math.round(flow.bytes_out + flow.bytes_in))),
        h("td", {}, count(link.outbox)));
    }));
    $("no-links").hidden = node.overview.links.length > 0;
  }
}

const WORDS = { up: "up", unknown: "looking …", unreachable: "unreachable" };
