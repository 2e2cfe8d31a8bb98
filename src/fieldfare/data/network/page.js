(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg", MOST = 600, LEAST = 0.3; // seconds that a message can be seen at least
  const made = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const drawn = (kind) => [...$("canvas").querySelectorAll(kind)]; // the legend has some, too
  const brokers = drawn(".broker"), links = drawn(".link");
  const end = data.seconds;
  let now = 0, playing = false, chosen = null, last = null;

  // Messages

  const dots = [];
  function dot(number) {
    if (!dots[number]) {
      dots[number] = document.createElementNS(SVG, "circle");
      $("messages").append(dots[number]);
    }
    return dots[number];
  }

  function drawMessages() {
    const span = Math.max(data.latency, LEAST * Number($("speed").value));
    const found = timeline.underWay(data.messages, now, span, MOST);
    found.forEach(({ message: [, from, to, kind], share }, number) => {
      const a = data.brokers[from], b = data.brokers[to], circle = dot(number);
      circle.setAttribute("cx", (a.x + (b.x - a.x) * share).toFixed(1));
      circle.setAttribute("cy", (a.y + (b.y - a.y) * share).toFixed(1));
      circle.setAttribute("r", 4);
      circle.setAttribute("class", kind ? "tell" : "event");
    });
    for (let number = found.length; number < dots.length; number++) dots[number].setAttribute("r", 0);
  }

  // Brokers and links

  function drawState() {
    const { up, crashed } = timeline.state(data.changes, now);
    brokers.forEach((one, number) => {
      one.classList.toggle("crashed", crashed.has(number));
      one.classList.toggle("chosen", number === chosen);
    });
    links.forEach((one, number) => one.classList.toggle("down", !up.has(data.links[number].join(" "))));
    return crashed;
  }

  function describe(crashed) {
    const panel = $("chosen");
    panel.replaceChildren(made("h2", "Broker"));
    if (chosen === null) {
      panel.append(made("p", "Choose a broker to see its clients, what they want, and what it has done by now.", "hint"));
      return;
    }
    panel.append(made("p", data.brokers[chosen].name + (crashed.has(chosen) ? " – down" : ""), "filter"));
    const list = made("dl", undefined, "counts");
    data.counters.forEach((name, number) => {
      const value = timeline.counted(data.counts[chosen][number], data.width, now);
      list.append(made("dt", name), made("dd", value.toLocaleString("en")));
    });
    panel.append(list);
    const held = timeline.lasting(data.asked.filter((one) => one[2] === chosen), now), clients = new Map();
    for (const [, , , client, kind, filter] of held) clients.set(client, [...(clients.get(client) || []), [kind, filter]]);
    panel.append(made("h2", `Clients: ${clients.size}`));
    for (const [client, lines] of [...clients].sort().slice(0, 50)) {
      panel.append(made("p", client, "client"));
      const items = made("ul", undefined, "asked");
      for (const [kind, filter] of lines.slice(0, 20)) items.append(made("li", filter, kind));
      if (lines.length > 20) items.append(made("li", `and ${lines.length - 20} more`, "hint"));
      panel.append(items);
    }
  }

  // Time

  let described = "";
  function draw() {
    drawMessages();
    const crashed = drawState();
    const shown = `${chosen} ${Math.floor(now / Math.max(data.width, 1e-9))} ${[...crashed]}`;
    if (shown !== described) describe(crashed);
    described = shown;
    $("time").textContent = `${now.toFixed(2)} s`;
    $("scrub").value = now;
    $("cursor").setAttribute("transform", `translate(${(1000 * now) / (end || 1)} 0)`);
  }

  function go(time) {
    now = Math.min(Math.max(time, 0), end);
    draw();
  }

  function frame(stamp) {
    if (!playing) return;
    const passed = last === null ? 0 : Math.min((stamp - last) / 1000, 0.1);
    last = stamp;
    go(now + passed * Number($("speed").value));
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
  $("chart").addEventListener("click", (event) => {
    const frame = $("chart").getBoundingClientRect();
    go(((event.clientX - frame.left) / frame.width) * end);
  });
  brokers.forEach((one, number) => {
    one.addEventListener("click", (event) => { event.stopPropagation(); choose(number); });
    one.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(number); });
  });
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
