// What is known of all nodes: looked at every second, turned into rates, and remembered for some minutes.

import { ask, home, httpOf } from "./api.js";

export const SPAN = 180; // seconds that are remembered
const EVERY = 1000;
const PATIENCE = 2500;
const REST = 4; // a node that did not answer is asked every so many turns

const total = (links, name) => links.reduce((sum, link) => sum + (link.traffic?.[name] ?? 0), 0);

/** The counters of an overview that rates are made of. */
export function counters(overview) {
  const { traffic, links } = overview;
  return {
    published: traffic.events_in,
    arrived: total(links, "events_in"),
    forwarded: total(links, "events_out"),
    delivered: traffic.deliveries,
    told: total(links, "tells_in") + total(links, "tells_out"),
    bytes: traffic.bytes_in + traffic.bytes_out + total(links, "bytes_in") + total(links, "bytes_out"),
    busy: traffic.busy,
    refused: traffic.refused,
  };
}

/** Growth in a second; null if the node has started anew in between. */
export function growth(before, after, seconds) {
  const found = {};
  for (const [name, value] of Object.entries(after)) {
    if (!(name in before)) continue;
    if (value < before[name]) return null;
    found[name] = (value - before[name]) / seconds;
  }
  return found;
}

const linkCounters = (overview) => new Map(overview.links.map((link) => [link.name, link.traffic ?? {}]));

function figures(overview, rates) {
  const handled = rates.published + rates.arrived;
  return {
    ...rates,
    handled,
    cost: handled > 0 ? rates.busy / handled : null, // seconds of the broker for an event
    waiting: overview.pending,
    outbox: overview.links.reduce((sum, link) => sum + (link.outbox ?? 0), 0),
    entries: overview.table,
  };
}

/** Take an answer of a node into its record. */
export function noted(node, overview, now) {
  const counted = counters(overview), onLinks = linkCounters(overview);
  const seconds = (now - node.at) / 1000;
  node.flows = new Map();
  if (node.counted && seconds > 0.05) {
    const rates = growth(node.counted, counted, seconds);
    if (rates === null) node.history.push({ at: now });
    else {
      node.now = figures(overview, rates);
      node.history.push({ at: now, ...node.now });
      for (const [name, after] of onLinks)
        if (node.onLinks.has(name)) node.flows.set(name, growth(node.onLinks.get(name), after, seconds) ?? {});
    }
  }
  while (node.history[0]?.at < now - SPAN * 1000) node.history.shift();
  Object.assign(node, { overview, counted, onLinks, at: now, state: "up", trouble: null });
}

/** Note that a node did not answer; what was known of it stays. */
function lost(node, trouble) {
  Object.assign(node, { state: "unreachable", trouble, now: null });
  node.flows.clear();
  if (node.history.length) node.history.push({ at: performance.now() }); // a gap in the curves
}

export class Overlay {
  constructor(changed) {
    this.nodes = new Map();
    this.self = null;
    this.trouble = null; // why our own node does not answer
    this._changed = changed;
    this._turn = 0;
  }

  start() {
    const turn = async () => {
      if (!document.hidden) await this.look();
      setTimeout(turn, EVERY);
    };
    turn();
  }

  /** Look at all nodes, our own first; it asks the others. */
  async look() {
    this._turn += 1;
    try {
      const overview = await ask("admin/overview", { limit: PATIENCE });
      this.trouble = null;
      this.self = overview.name;
      this._take(this._node(overview.name, overview.url), overview);
    } catch (trouble) {
      this.trouble = trouble;
      if (this.self) lost(this.nodes.get(this.self), trouble);
    }
    this._changed(this);
    const others = [...this.nodes.values()].filter((node) => node.name !== this.self && !node.name.includes("@") && this._due(node));
    await Promise.all(others.map((node) => this._lookAt(node)));
    this._changed(this);
  }

  async _lookAt(node) {
    try {
      this._take(node, await ask(`admin/nodes/${encodeURIComponent(node.name)}`, { limit: PATIENCE }));
    } catch (trouble) {
      lost(node, trouble);
    }
  }

  _due(node) {
    return node.state === "up" || node.state === "unknown" || this._turn % REST === 0;
  }

  _take(node, overview) {
    noted(node, overview, performance.now());
    for (const [name, url] of Object.entries(overview.overlay ?? {})) this._node(name, url);
    for (const link of overview.links) this._node(link.name, link.url);
  }

  _node(name, url = "") {
    let node = this.nodes.get(name);
    if (!node) {
      node = { name, url, state: "unknown", trouble: null, overview: null, now: null, at: 0 };
      Object.assign(node, { history: [], flows: new Map(), onLinks: new Map() });
      this.nodes.set(name, node);
    }
    node.url = url || node.url;
    return node;
  }

  /** Links, each once: whether it is up, and what flows there and back. Either end may tell. */
  links() {
    const found = new Map();
    for (const node of this.nodes.values())
      for (const link of node.overview?.links ?? []) {
        const ends = [node.name, link.name].sort();
        const key = JSON.stringify(ends);
        const known = found.get(key) ?? { key, ends, up: true, flows: [null, null], outbox: [0, 0] };
        const here = ends[0] === node.name ? 0 : 1, flow = node.flows.get(link.name);
        if (node.state === "up") known.up &&= link.up;
        if (flow) {
          known.flows[here] = { events: flow.events_out ?? 0, tells: flow.tells_out ?? 0 };
          known.flows[1 - here] ??= { events: flow.events_in ?? 0, tells: flow.tells_in ?? 0 };
        }
        known.outbox[here] = link.outbox ?? 0;
        found.set(key, known);
      }
    const silent = (name) => this.nodes.get(name)?.state === "unreachable";
    return [...found.values()].map((link) => ({ ...link, up: link.up && !link.ends.every(silent) }));
  }
}

export const origin = (node, self) => (node.name === self ? home : httpOf(node.url));
