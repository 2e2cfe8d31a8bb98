(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const STEP = 0.28, FADE = 1.1, LANE = 4, MOST = 900; // real seconds that a step and a handover can be seen
  const KINDS = ["taxi", "ride", "traffic"], SVG = "http://www.w3.org/2000/svg";
  const end = data.seconds, first = data.names.length, movers = data.movers;
  let now = 0, playing = false, chosen = null, last = null;

  const made = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const drawn = (name, into, kind) => {
    const element = document.createElementNS(SVG, name);
    if (kind) element.setAttribute("class", kind);
    into.append(element);
    return element;
  };
  const set = (element, values) => { for (const name in values) element.setAttribute(name, values[name]); };
  const speed = () => Number($("speed").value);

  // What is so at a time

  const latest = (items, time) => items[Math.max(timeline.after(items, time) - 1, 0)];
  function where(mover, time) {
    const way = mover.way, next = Math.min(Math.max(timeline.after(way, time), 1), way.length - 1);
    const [t0, x0, y0] = way[next - 1], [t1, x1, y1] = way[next];
    const share = Math.min(Math.max((time - t0) / (t1 - t0), 0), 1);
    const dx = Math.sign(x1 - x0), dy = Math.sign(y1 - y0); // one drives on the right
    return { x: x0 + (x1 - x0) * share - dy * LANE, y: y0 + (y1 - y0) * share + dx * LANE, turn: Math.atan2(dy, dx) * 57.29578 };
  }
  function place(node, seen) {
    if (node >= first && node < first + movers.length) return seen[node - first];
    const [x, y] = data.places[node];
    return { x, y };
  }
  function state(mover) {
    const antenna = latest(mover.contacts, now)[1];
    return {
      antenna, away: antenna < 0, free: latest(mover.free, now)[1],
      waiting: antenna < 0 ? latest(mover.waiting, now)[1] : 0,
      got: timeline.after(mover.got, now), moved: timeline.after(mover.moved, now),
    };
  }

  // Those who move

  const shown = movers.map((mover, number) => {
    const group = drawn("g", $("movers"), "mover"), tether = drawn("line", $("tethers"), "tether");
    const body = mover.taxi ? drawn("rect", group, "car") : drawn("path", group, "walker");
    set(body, mover.taxi ? { x: -11, y: -6.5, width: 22, height: 13, rx: 4 } : { d: "M0 -9l9 9l-9 9l-9 -9z" });
    const name = drawn("text", group), badge = drawn("circle", group, "badge"), wait = drawn("text", group, "wait");
    name.textContent = mover.taxi ? mover.name.replace(/\D/g, "") : "";
    set(name, { y: -14 });
    set(badge, { cx: 0, cy: 16, r: 8 });
    set(wait, { y: 20 });
    drawn("title", group).textContent = mover.name;
    set(group, { tabindex: 0, role: "button", "aria-label": mover.name });
    group.addEventListener("click", (event) => { event.stopPropagation(); choose(number); });
    group.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(number); });
    return { group, body, tether, badge, wait };
  });

  function drawMovers(seen, states) {
    movers.forEach((mover, number) => {
      const { group, body, tether, badge, wait } = shown[number], { x, y, turn } = seen[number], is = states[number];
      set(group, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: number === chosen ? "mover chosen" : "mover" });
      if (mover.taxi) set(body, { transform: `rotate(${turn.toFixed(0)})`, class: `car ${is.away ? "away" : is.free ? "free" : "busy"}` });
      wait.textContent = is.waiting || "";
      set(badge, { visibility: is.waiting ? "visible" : "hidden" });
      if (is.away) set(tether, { visibility: "hidden" });
      else {
        const [ax, ay] = data.places[is.antenna];
        set(tether, { visibility: "visible", x1: x.toFixed(1), y1: y.toFixed(1), x2: ax, y2: ay });
      }
    });
  }

  // Events and handovers: elements are used again and again

  const pool = (name, into) => {
    const all = [];
    return (count, each) => {
      while (all.length < count) all.push(drawn(name, into));
      all.forEach((one, number) => (number < count ? each(one, number) : set(one, { visibility: "hidden" })));
    };
  };
  const dots = pool("circle", $("messages")), lines = pool("line", $("handovers"));

  function drawMessages(seen) {
    const span = 100 * STEP * speed(), time = 100 * now, found = [];
    for (let at = timeline.after(data.messages, time) - 1; at >= 0 && found.length < MOST; at--) {
      const message = data.messages[at];
      if (time - message[0] >= span * (data.longest + 1)) break;
      const share = (time - message[0]) / span - message[1];
      if (share >= 0 && share < 1) found.push([message, share]);
    }
    dots(found.length, (dot, number) => {
      const [[, , from, to, kind], share] = found[number], a = place(from, seen), b = place(to, seen);
      set(dot, {
        visibility: "visible", class: `dot ${KINDS[kind]}`, r: kind ? 5.5 : 4,
        cx: (a.x + (b.x - a.x) * share).toFixed(1), cy: (a.y + (b.y - a.y) * share).toFixed(1),
      });
    });
  }

  function drawHandovers() {
    const span = FADE * speed(), found = [];
    for (let at = timeline.after(data.handovers, now) - 1; at >= 0; at--) {
      const share = (now - data.handovers[at][0]) / span;
      if (share >= 1) break;
      found.push([data.handovers[at], share]);
    }
    lines(found.length, (line, number) => {
      const [[, , , from, to], share] = found[number], [x1, y1] = data.places[from], [x2, y2] = data.places[to];
      const head = Math.min(1, share * 2), tail = Math.max(0, share * 2 - 1);
      set(line, {
        visibility: "visible", class: "handover", opacity: (1 - tail * 0.6).toFixed(2),
        x1: x1 + (x2 - x1) * tail, y1: y1 + (y2 - y1) * tail, x2: x1 + (x2 - x1) * head, y2: y1 + (y2 - y1) * head,
      });
    });
  }

  // Words

  const rows = movers.map((mover, number) => {
    if (!mover.taxi) return null;
    const row = made("tr"), button = made("button", mover.name.replace(/\D/g, "")), first = made("td");
    button.setAttribute("aria-label", mover.name);
    button.addEventListener("click", () => choose(number === chosen ? null : number));
    first.append(button);
    row.append(first, made("td"), made("td"), made("td"), made("td"));
    $("taxis").tBodies[0].append(row);
    return row;
  });
  const word = (is) => (is.away ? "cut off" : is.free ? "free" : "busy");

  function describe(states) {
    for (const [id, name] of [["published", "published"], ["delivered", "delivered"], ["handed", "handovers"], ["lost", "lost"]])
      $(id).textContent = timeline.counted(data.counts[name], data.width, now).toLocaleString("en");
    $("lost").className = $("lost").textContent === "0" ? "none" : "some";
    states.forEach((is, number) => {
      if (!rows[number]) return;
      const [, what, antenna, got, moved] = rows[number].cells;
      what.textContent = word(is);
      antenna.textContent = is.away ? `${is.waiting} wait` : data.names[is.antenna];
      antenna.className = is.away ? "wait" : "";
      got.textContent = is.got;
      moved.textContent = is.moved;
      rows[number].className = number === chosen ? "chosen" : "";
    });
    const panel = $("chosen"), wanted = new Set();
    panel.replaceChildren();
    if (chosen !== null) {
      const mover = movers[chosen], held = new Map();
      for (const [time, id, filter] of mover.asked) if (time <= now) held.set(id, filter);
      panel.append(made("h2", `${mover.name} wants`));
      for (const filter of held.values()) {
        panel.append(made("p", filter, "filter"));
        for (const [, cell] of filter.matchAll(/'([a-d]\d)'/g)) wanted.add(cell);
      }
    }
    document.querySelectorAll(".cell").forEach((cell) => cell.classList.toggle("wanted", wanted.has(cell.dataset.cell)));
  }

  // Time

  let described = "";
  function draw() {
    const seen = movers.map((mover) => where(mover, now)), states = movers.map(state);
    drawMovers(seen, states);
    drawMessages(seen);
    drawHandovers();
    const mark = `${chosen} ${Math.floor(now * 4)}`;
    if (mark !== described) describe(states);
    described = mark;
    $("time").textContent = `${now.toFixed(1)} s`;
    $("scrub").value = now;
  }

  function go(time) {
    now = Math.min(Math.max(time, 0), end);
    draw();
  }

  function frame(stamp) {
    if (!playing) return;
    const passed = last === null ? 0 : Math.min((stamp - last) / 1000, 0.1);
    last = stamp;
    go(now + passed * speed());
    if (now >= end) play(false);
    else requestAnimationFrame(frame);
  }

  function play(wanted) {
    if (wanted && now >= end) now = 0;
    playing = wanted;
    last = null;
    $("play").textContent = playing ? "Pause" : "Play";
    if (playing) requestAnimationFrame(frame);
  }

  function choose(number) {
    chosen = number;
    draw();
  }

  $("play").addEventListener("click", () => play(!playing));
  $("speed").addEventListener("change", draw);
  $("scrub").addEventListener("input", () => go(Number($("scrub").value)));
  $("canvas").addEventListener("click", () => choose(null));
  for (const [time, rule, problem] of data.violations) {
    const item = made("li"), button = made("button", `${time.toFixed(2)} s, ${rule}: ${problem}`);
    button.title = problem;
    button.addEventListener("click", () => go(time));
    item.append(button);
    $("violations").append(item);
  }
  document.addEventListener("keydown", (event) => {
    if (/^(INPUT|SELECT|BUTTON)$/.test(event.target.tagName)) return;
    if (event.key === " ") { event.preventDefault(); play(!playing); }
    else if (event.key === "ArrowRight") go(now + end / 100);
    else if (event.key === "ArrowLeft") go(now - end / 100);
    else if (event.key === "Escape") choose(null);
  });
  draw();
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
})();
