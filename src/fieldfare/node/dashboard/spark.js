// Sparklines: how a figure went during the last minutes.

import { s, set } from "./dom.js";

const WIDTH = 100, HEIGHT = 24;

/** An empty one. */
export function sparkline() {
  const area = s("path", { class: "area" }), line = s("path", { class: "line" });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
  const svg = s("svg", { class: "spark", ...box }, area, line);
  return { svg, area, line };
}

/** Points of a path from [seconds ago, value] pairs; null values are gaps. */
export function paths(samples, span, top) {
  const x = (ago) => (WIDTH * (1 - ago / span)).toFixed(2);
  const y = (value) => (HEIGHT - 1.5 - (value / top) * (HEIGHT - 4)).toFixed(2);
  let line = "", area = "", open = false, lastX = "0";
  for (const [ago, value] of samples) {
    if (value == null) {
      if (open) area += `L${lastX} ${HEIGHT}Z`;
      open = false;
      continue;
    }
    const at = x(ago), point = `${at} ${y(value)}`;
    line += (open ? "L" : "M") + point;
    area += open ? `L${point}` : `M${at} ${HEIGHT}L${point}`;
    [open, lastX] = [true, at];
  }
  return { line, area: open ? `${area}L${lastX} ${HEIGHT}Z` : area };
}

export function drawSparkline({ area, line }, history, key, now, span) {
  const samples = history.map((sample) => [(now - sample.at) / 1000, sample[key]]);
  const top = Math.max(1e-9, ...samples.map(([, value]) => value ?? 0));
  const drawn = paths(samples, span, top);
  set(area, { d: drawn.area });
  set(line, { d: drawn.line });
}
