(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const canvas = $("canvas"), svg = canvas.querySelector("svg"), world = $("world");
  const nodes = [...world.querySelectorAll(".node")], edges = [...world.querySelectorAll(".edge")];
  const mergers = data.mergersDrawn ? [...world.querySelectorAll(".merger")] : [];
  const above = data.nodes.map(() => []), below = data.nodes.map(() => []);
  data.edges.forEach(([upper, lower], number) => {
    above[lower].push({ place: upper, number });
    below[upper].push({ place: lower, number });
  });
  const made = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  // Moving around: the world is scaled and shifted, in pixels of the canvas.

  const natural = svg.viewBox.baseVal, whole = { x: natural.x, y: natural.y, width: natural.width, height: natural.height };
  svg.removeAttribute("viewBox");
  let scale = 1, left = 0, top = 0;
  const place = () => world.setAttribute("transform", `translate(${left} ${top}) scale(${scale})`);

  function fit() {
    const { clientWidth: width, clientHeight: height } = canvas;
    scale = Math.min(1.4, width / whole.width, height / whole.height) || 1;
    left = (width - whole.width * scale) / 2 - whole.x * scale;
    top = Math.max(0, (height - whole.height * scale) / 2) - whole.y * scale;
    place();
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const next = Math.min(6, Math.max(0.02, scale * factor));
    left = x - ((x - left) * next) / scale;
    top = y - ((y - top) * next) / scale;
    scale = next;
    place();
  }

  function centre(number) {
    const box = nodes[number].getBBox(), shift = nodes[number].transform.baseVal[0].matrix;
    scale = Math.max(scale, 0.9);
    left = canvas.clientWidth / 2 - (shift.e + box.width / 2) * scale;
    top = canvas.clientHeight / 2 - (shift.f + box.height / 2) * scale;
    place();
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const frame = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  const pointers = new Map();
  let moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    moved = pointers.size > 1;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    if (!moved && Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY) < 4) return;
    if (!moved) { moved = true; canvas.setPointerCapture(event.pointerId); canvas.classList.add("held"); }
    if (pointers.size === 1) {
      left += event.clientX - last.clientX;
      top += event.clientY - last.clientY;
      place();
    } else { // two fingers
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1], frame = canvas.getBoundingClientRect();
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      zoom(apart(event) / apart(last), (event.clientX + other.clientX) / 2 - frame.left, (event.clientY + other.clientY) / 2 - frame.top);
    }
    pointers.set(event.pointerId, event);
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, (event) => { pointers.delete(event.pointerId); canvas.classList.remove("held"); });
  }

  // Choosing

  let chosen = null;

  function reach(start, neighbours) {
    const places = new Set([start]), lines = new Set();
    for (const one of places) for (const { place: next, number } of neighbours[one]) { places.add(next); lines.add(number); }
    return { places, lines };
  }

  function choose(number) {
    chosen = number;
    world.querySelectorAll(".merger.extra").forEach((path) => path.remove());
    if (number !== null && !data.mergersDrawn) {
      for (const one of data.mergers) if (one.pair.includes(number)) {
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("class", "merger extra near");
        path.setAttribute("d", one.arc);
        world.prepend(path);
      }
    }
    shade();
    describe();
  }

  function shade() {
    const query = $("search").value.trim().toLowerCase();
    let near = null, lines = new Set(), hits = [];
    if (query) {
      hits = data.nodes.flatMap((node, number) => (
        node.filter.toLowerCase().includes(query) ||
        node.interfaces.some((one) => data.interfaces[one].name.toLowerCase().includes(query)) ? [number] : []));
      near = new Set(hits);
      if (chosen !== null) near.add(chosen);
    } else if (chosen !== null) {
      const up = reach(chosen, above), down = reach(chosen, below);
      near = new Set([...up.places, ...down.places]);
      lines = new Set([...up.lines, ...down.lines]);
      for (const one of data.mergers) if (one.pair.includes(chosen)) one.pair.forEach((place) => near.add(place));
    }
    world.classList.toggle("world-dim", near !== null);
    nodes.forEach((node, number) => {
      node.classList.toggle("near", near !== null && near.has(number));
      node.classList.toggle("chosen", number === chosen);
    });
    edges.forEach((edge, number) => edge.classList.toggle("near", lines.has(number)));
    mergers.forEach((path, number) => path.classList.toggle("near", chosen !== null && data.mergers[number].pair.includes(chosen)));
    $("found").textContent = query ? `${hits.length} found` : "";
    return hits;
  }

  function link(number, kind) {
    const item = made("li"), button = made("button", data.nodes[number].filter, kind);
    button.title = data.nodes[number].filter;
    button.addEventListener("click", () => { choose(number); centre(number); });
    item.append(button);
    return item;
  }

  function listed(title, places) {
    if (!places.length) return [];
    const list = made("ul", undefined, "links"), cell = made("dd");
    list.append(...places.map((number) => link(number)));
    cell.append(list);
    return [made("dt", `${title} (${places.length})`), cell];
  }

  function dot(one) {
    const label = made("span", undefined, "whose"), mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    mark.setAttribute("width", 10); mark.setAttribute("height", 10);
    for (const [name, value] of [["cx", 5], ["cy", 5], ["r", 5], ["fill", one.colour]]) circle.setAttribute(name, value);
    mark.append(circle);
    label.append(mark, one.name);
    return label;
  }

  function describe() {
    const panel = $("chosen");
    panel.replaceChildren(made("h2", "Filter"));
    if (chosen === null) {
      panel.append(made("p", "Choose a box to see its filter, whose it is, and what it has to do with others.", "hint"));
      return;
    }
    const node = data.nodes[chosen], about = made("dl");
    panel.append(made("p", node.filter, "filter"));
    if (node.interfaces.length) {
      const cell = made("dd");
      cell.append(...node.interfaces.map((one) => dot(data.interfaces[one])));
      about.append(made("dt", node.interfaces.length > 1 ? "Interfaces" : "Interface"), cell);
    }
    const immediate = data.structure === "poset" ? "immediately " : "in its tree ";
    about.append(...listed(`Covered ${immediate}by`, above[chosen].map((one) => one.place)));
    about.append(...listed(`Covers ${immediate}`.trim(), below[chosen].map((one) => one.place)));
    const partners = data.mergers.filter((one) => one.pair.includes(chosen));
    if (partners.length) {
      const cell = made("dd"), list = made("ul", undefined, "links");
      for (const one of partners) {
        list.append(link(one.pair[0] === chosen ? one.pair[1] : one.pair[0]));
        list.lastChild.append(made("div", `→ ${one.filter}`, "merged"));
      }
      cell.append(list);
      about.append(made("dt", `Merges exactly with (${partners.length})`), cell);
    }
    if (!above[chosen].length) about.append(made("dt", "Nothing covers it: it is a root."));
    panel.append(about);
  }

  nodes.forEach((node, number) => {
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.setAttribute("aria-label", data.nodes[number].filter);
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(number); }
    });
  });
  canvas.addEventListener("click", (event) => {
    if (moved) { moved = false; return; }
    const node = event.target.closest(".node");
    choose(node ? Number(node.dataset.place) : null);
  });

  // Testing events

  function light(answers) {
    nodes.forEach((node, number) => {
      node.classList.toggle("matched", answers !== null && answers[number] === true);
      node.classList.toggle("maybe", answers !== null && answers[number] === null);
    });
    edges.forEach((edge, number) => edge.classList.toggle("matched",
      answers !== null && data.edges[number].every((place) => answers[place] === true)));
    const list = $("answers");
    list.replaceChildren();
    if (answers === null) return;
    const yes = answers.flatMap((answer, number) => (answer === true ? [number] : []));
    const maybe = answers.flatMap((answer, number) => (answer === null ? [number] : []));
    $("verdict").textContent = `${yes.length} match` + (maybe.length ? `, ${maybe.length} need Python` : "");
    list.append(...yes.map((number) => link(number, "yes")), ...maybe.map((number) => link(number, "maybe")));
  }

  function infer(answers) { // what covers a match is one, and what a miss covers is none
    for (let again = true; again;) {
      again = false;
      for (const [upper, lower] of data.edges) {
        if (answers[upper] === false && answers[lower] === null) { answers[lower] = false; again = true; }
        if (answers[lower] === true && answers[upper] === null) { answers[upper] = true; again = true; }
      }
    }
  }

  function test() {
    const text = $("event").value.trim();
    const known = data.events.find((one) => one.text === text);
    if (known) {
      const matched = new Set(known.matched);
      light(data.nodes.map((_, number) => matched.has(number)));
      return;
    }
    try {
      const fields = matcher.fieldsOf(JSON.parse(text));
      const answers = data.nodes.map((node) => matcher.matches(node.wanted, fields));
      infer(answers);
      light(answers);
    } catch (error) {
      light(null);
      $("verdict").textContent = error.message;
    }
  }

  for (const one of data.events) {
    const option = made("option", one.text);
    option.value = one.text;
    $("given").append(option);
    $("given").hidden = false;
  }
  $("given").addEventListener("change", () => { $("event").value = $("given").value; if ($("given").value) test(); });
  $("test").addEventListener("click", test);
  $("clear").addEventListener("click", () => { $("event").value = $("given").value = $("verdict").textContent = ""; light(null); });
  $("event").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) test(); });

  // The rest

  $("search").addEventListener("input", shade);
  let next = 0;
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.target.value = ""; shade(); return; }
    if (event.key !== "Enter") { next = 0; return; }
    const hits = shade();
    if (hits.length) { const number = hits[next++ % hits.length]; choose(number); centre(number); }
  });
  document.addEventListener("keydown", (event) => {
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "/") { event.preventDefault(); $("search").focus(); }
    else if (event.key === "0") fit();
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "Escape") choose(null);
  });
  $("in").addEventListener("click", () => zoom(1.3));
  $("out").addEventListener("click", () => zoom(1 / 1.3));
  $("fit").addEventListener("click", fit);
  if (data.interfaces.length) {
    $("whose").hidden = false;
    for (const one of data.interfaces.slice(0, 40)) { const item = made("li"); item.append(dot(one)); $("legend").append(item); }
    if (data.interfaces.length > 40) $("legend").append(made("li", `and ${data.interfaces.length - 40} more`, "hint"));
  }
  addEventListener("resize", fit);
  fit();
  if (data.events.length) { $("event").value = $("given").value = data.events[0].text; test(); }
})();
