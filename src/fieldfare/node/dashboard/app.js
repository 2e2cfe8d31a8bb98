// The page: its views, the token, and one look at the overlay every second.

import { token } from "./api.js";
import { $, say } from "./dom.js";
import { lasting, rate } from "./format.js";
import { OverlayMap } from "./map.js";
import { Overlay } from "./overlay.js";
import { Panel } from "./panel.js";
import { Patterns } from "./patterns.js";
import { Pipelines } from "./pipelines.js";
import { PosetBrowser } from "./poset.js";
import { Sessions } from "./sessions.js";
import { Workbench } from "./workbench.js";

const VIEWS = ["overlay", "sessions", "workbench", "table", "patterns", "pipelines"];
let chosen = null;

const panel = new Panel(), sessions = new Sessions(), workbench = new Workbench(), poset = new PosetBrowser();
const patterns = new Patterns(), pipelines = new Pipelines();
const map = new OverlayMap($("map"), (name) => {
  chosen = name;
  draw();
});
const overlay = new Overlay(draw);

function draw() {
  const own = overlay.nodes.get(overlay.self);
  $("alert").hidden = !overlay.trouble;
  if (overlay.trouble) {
    say($("alert-text"), overlay.trouble.message);
    const tokenHelps = ["token", "denied"].includes(overlay.trouble.kind);
    $("alert-token").hidden = !tokenHelps;
  }
  if (!own) return;
  document.title = `${own.name} · Fieldfare`;
  say($("own-name"), own.name);
  say($("own-facts"), `${own.overview.version} · ${own.overview.strategy} · up ${lasting(own.overview.uptime)}`);
  chosen ??= own.name;
  map.show(overlay, chosen);
  panel.show(overlay, chosen);
  drawTotals();
}

function drawTotals() {
  const nodes = [...overlay.nodes.values()], up = nodes.filter((node) => node.state === "up");
  const sum = (key) => up.reduce((all, node) => all + (node.now?.[key] ?? 0), 0);
  say($("total-nodes"), up.length === nodes.length ? String(up.length) : `${up.length} of ${nodes.length}`);
  say($("total-published"), rate(sum("published")));
  say($("total-delivered"), rate(sum("delivered")));
  say($("total-told"), rate(sum("told") / 2)); // both ends count them
  say($("total-nodes-word"), nodes.length === 1 ? "node" : up.length === nodes.length ? "nodes" : "nodes reachable");
}

// Views

function open(view) {
  if (!VIEWS.includes(view)) view = VIEWS[0];
  for (const name of VIEWS) {
    const current = name === view;
    $(name).hidden = !current;
    const tab = $(`to-${name}`);
    tab.setAttribute("aria-selected", String(current));
    tab.tabIndex = current ? 0 : -1;
  }
  if (view === "sessions") sessions.refresh();
  if (view === "table") poset.refresh();
  if (view === "patterns") patterns.refresh();
  if (view === "pipelines") pipelines.refresh();
}

for (const [number, name] of VIEWS.entries()) {
  const tab = $(`to-${name}`);
  tab.addEventListener("click", () => (location.hash = name));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = VIEWS[(number + step + VIEWS.length) % VIEWS.length];
    location.hash = next;
    $(`to-${next}`).focus();
  });
}
addEventListener("hashchange", () => open(location.hash.slice(1)));
open(location.hash.slice(1));

// The token

const dialog = $("token-dialog");
const askToken = () => {
  $("token").value = token.get();
  dialog.showModal();
};
$("to-token").addEventListener("click", askToken);
$("alert-token").addEventListener("click", askToken);
$("token-cancel").addEventListener("click", () => dialog.close());
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token.set($("token").value.trim());
  dialog.close();
  $("to-token").classList.toggle("set", Boolean(token.get()));
  overlay.look();
  open(location.hash.slice(1));
  workbench.again();
});
$("to-token").classList.toggle("set", Boolean(token.get()));

overlay.start();
