// The picture of an automaton: states from left to right, and the ways between them. The end of a run has the number -1.

import { s } from "./dom.js";

const DETECTED = -1;
const GAP = 46, BESIDE = 16, HIGH = 44, PAD = 14, CHAR = 7.3, END = 26;

/** An SVG of a pattern's states and transitions; `label` is what a screen reader says. */
export function automaton({ states, transitions }, label) {
  const places = placed(states, transitions);
  const boxes = [...places.values()];
  const width = Math.max(...boxes.map(({ x, wide }) => x + wide)) + PAD;
  const height = Math.max(...boxes.map(({ y }) => y)) + HIGH / 2 + PAD + 14;
  const ways = transitions.map(([from, to]) => way(places.get(from), places.get(to), from === to));
  const begins = states.filter(({ first }) => first).map(({ number }) => {
    const { x, y } = places.get(number);
    return s("path", { class: "way", d: `M${x - 18} ${y}H${x}`, "marker-end": "url(#arrow)" });
  });
  return s("svg", { class: "automaton", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, width, height },
    s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7.5, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" },
      s("path", { d: "M0 0 8 4 0 8z" }))),
    begins, ways,
    states.map((state) => box(state, places.get(state.number))),
    end(places.get(DETECTED)));
}

/** Columns by the shortest way from a beginning; the detection stands last. */
function placed(states, transitions) {
  const column = new Map(states.filter(({ first }) => first).map(({ number }) => [number, 0]));
  for (const number of column.keys()) // a Map yields what is added on the way
    for (const [from, to] of transitions)
      if (from === number && to !== DETECTED && !column.has(to)) column.set(to, column.get(number) + 1);
  const last = Math.max(0, ...column.values());
  const columns = Array.from({ length: last + 1 }, () => []);
  for (const state of states) columns[column.get(state.number) ?? last].push(state);
  const most = Math.max(...columns.map((some) => some.length));
  const places = new Map();
  let x = PAD + 18;
  for (const some of columns) {
    const wide = Math.max(...some.map(wideOf), 40);
    const high = (some.length - 1) * (HIGH + BESIDE);
    some.forEach(({ number }, row) => {
      const y = PAD + 16 + HIGH / 2 + ((most - 1) * (HIGH + BESIDE) - high) / 2 + row * (HIGH + BESIDE);
      places.set(number, { x, y, wide });
    });
    x += wide + GAP;
  }
  const y = PAD + 16 + HIGH / 2 + ((most - 1) * (HIGH + BESIDE)) / 2;
  return places.set(DETECTED, { x, y, wide: END });
}

const words = ({ waits, fails }) => [waits, fails && `${fails} ends it`].filter(Boolean).map(short);
const short = (text) => (text.length > 42 ? `${text.slice(0, 41)}…` : text);
const wideOf = (state) => Math.max(...words(state).map((text) => text.length)) * CHAR + 24;

function box(state, { x, y, wide }) {
  const lines = words(state);
  return s("g", { class: state.open ? "state open" : "state", "data-state": state.number },
    s("title", {}, `waits for ${state.waits}${state.fails ? `; ${state.fails} ends the run` : ""}`),
    s("rect", { x, y: y - HIGH / 2, width: wide, height: HIGH, rx: 10 }),
    lines.map((text, line) =>
      s("text", { class: line ? "fails" : "waits", x: x + wide / 2, y: y + 4.5 + (line - (lines.length - 1) / 2) * 16 }, text)),
    state.open > 0 && s("g", { class: "runs" },
      s("circle", { cx: x + wide - 4, cy: y - HIGH / 2 + 2, r: 11 }),
      s("text", { x: x + wide - 4, y: y - HIGH / 2 + 6 }, state.open > 999 ? "1k" : String(state.open))));
}

const end = ({ x, y }) =>
  s("g", { class: "detected" },
    s("title", {}, "detected"),
    s("circle", { cx: x + END / 2, cy: y, r: END / 2 }),
    s("circle", { class: "inner", cx: x + END / 2, cy: y, r: END / 2 - 5 }));

function way(from, to, loop) {
  const marker = { class: "way", "marker-end": "url(#arrow)" };
  const left = from.x, right = from.x + from.wide;
  if (loop) {
    const middle = left + from.wide / 2, top = from.y - HIGH / 2;
    return s("path", { ...marker, d: `M${middle - 14} ${top}C${middle - 22} ${top - 24} ${middle + 22} ${top - 24} ${middle + 14} ${top}` });
  }
  if (to.x === from.x) { // in the same column: straight down or up
    const down = Math.sign(to.y - from.y), middle = left + from.wide / 2 - 8 * down;
    return s("path", { ...marker, d: `M${middle} ${from.y + (down * HIGH) / 2}V${to.y - (down * HIGH) / 2}` });
  }
  if (to.x < from.x) { // back: below both
    const low = Math.max(from.y, to.y) + HIGH / 2 + 16;
    return s("path", { ...marker, d: `M${left + from.wide / 2} ${from.y + HIGH / 2}C${left + from.wide / 2} ${low} ${to.x + to.wide / 2} ${low} ${to.x + to.wide / 2} ${to.y + HIGH / 2}` });
  }
  const bend = Math.min(GAP, (to.x - right) / 2);
  return s("path", { ...marker, d: `M${right} ${from.y}C${right + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x} ${to.y}` });
}
