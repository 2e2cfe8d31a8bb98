// Runs the script of a page of `fieldfare simulate` without a browser, on a document that is just enough, and says what
// the page shows at some times. Arguments: the page, its data and scripts, and times, as JSON on standard input.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const { html, data, scripts, times, choose } = JSON.parse(readFileSync(0, "utf-8"));

class Element {
  constructor(name) {
    Object.assign(this, { tagName: name, textContent: "", className: "", value: "", children: [], attributes: {}, listeners: {} });
    const classes = new Set();
    this.classList = { toggle: (one, on) => (on ? classes.add(one) : classes.delete(one)), has: (one) => classes.has(one) };
  }
  append(...items) { this.children.push(...items); }
  replaceChildren(...items) { this.children = items; }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(kind, listener) { this.listeners[kind] = listener; }
  getBoundingClientRect() { return { left: 0, width: 1000 }; }
  text() { return [this.textContent, ...this.children.map((one) => one.text())].filter((one) => one !== "").join("\n"); }
}

const byId = new Map(), frames = [];
const get = (id) => byId.get(id) ?? byId.set(id, new Element(id)).get(id);
const canvas = html.slice(html.indexOf('<section id="canvas"'), html.indexOf("<aside>"));
const inside = (text, kind) => [...text.matchAll(new RegExp(`class="([^"]* )?${kind.slice(1)}[ "]`, "g"))].map(() => new Element(kind));
const many = { ".broker": inside(canvas, ".broker"), ".link": inside(canvas, ".link") };
get("canvas").querySelectorAll = (kind) => many[kind];
get("data").textContent = JSON.stringify(data);
get("speed").value = "1";
const document = {
  getElementById: get,
  querySelectorAll: (kind) => inside(html, kind),
  createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
  addEventListener() {},
};
runInNewContext(scripts, {
  document,
  matchMedia: () => ({ matches: false }),
  requestAnimationFrame: (frame) => frames.push(frame),
});

// It plays by itself: half a second in five frames.
for (let stamp = 0; stamp <= 500; stamp += 100) frames.shift()(stamp);
const played = get("time").textContent;
get("play").listeners.click();
many[".broker"][choose].listeners.click({ stopPropagation() {} });
const shown = times.map((time) => {
  get("scrub").value = String(time);
  get("scrub").listeners.input();
  return {
    messages: get("messages").children.filter((one) => Number(one.attributes.r) > 0).map((one) => ({ ...one.attributes })),
    crashed: many[".broker"].flatMap((one, number) => (one.classList.has("crashed") ? [number] : [])),
    down: many[".link"].flatMap((one, number) => (one.classList.has("down") ? [number] : [])),
    chosen: get("chosen").text(),
  };
});
process.stdout.write(JSON.stringify({ played, shown, violations: get("violations").children.length }));
