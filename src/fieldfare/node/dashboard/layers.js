// Where to draw a graph whose edges lead downwards: boxes in layers, and the lines between them.

/**
 * A graph whose edges lead downwards: parts that hang together are drawn in layers, and set like words in lines.
 * Boxes are {id, width}; `aspect` is that of the room, width to height. Gives a corner for each box; for each edge a
 * route, the boxes that it leads along (those between its ends are bends, and have corners too); and how large it is.
 */
export function drawing(boxes, edges, aspect, gaps = {}) {
  const parts = connected(boxes, edges).map((part) => layered(part.boxes, part.edges, gaps));
  parts.sort((a, b) => b.height - a.height || b.width - a.width);
  const area = parts.reduce((sum, part) => sum + (part.width + PART) * (part.height + PART), 0);
  const widest = Math.max(0, ...parts.map((part) => part.width));
  const wide = Math.sqrt(area * aspect); // if nothing were left empty
  const tries = [0.8, 0.9, 1, 1.1, 1.25, 1.5].map((factor) => inLines(parts, Math.max(widest, wide * factor)));
  if (!parts.length) return tries[0];
  const room = ({ width, height }) => Math.min(aspect / width, 1 / height); // how large it can be shown
  return tries.reduce((best, one) => (room(one) > room(best) ? one : best));
}

const PART = 30;
const BEND = 6;
const MOST_BENDS = 3; // for each box

function inLines(parts, most) {
  const lines = [];
  for (const part of parts) {
    const line = lines.at(-1);
    if (line && line.width + PART + part.width <= most) {
      line.parts.push(part);
      line.width += PART + part.width;
    } else lines.push({ parts: [part], width: part.width, height: part.height }); // the tallest comes first
  }
  const width = Math.max(0, ...lines.map((line) => line.width)), corners = new Map();
  let y = 0;
  for (const line of lines) {
    let x = (width - line.width) / 2;
    for (const part of line.parts) {
      for (const [id, corner] of part.corners) corners.set(id, { ...corner, x: corner.x + x, y: corner.y + y });
      x += part.width + PART;
    }
    y += line.height + PART;
  }
  const routes = parts.flatMap((part) => part.routes);
  return { corners, routes, width, height: Math.max(0, y - PART) };
}

function connected(boxes, edges) {
  const group = new Map(boxes.map((box) => [box.id, box.id]));
  const find = (id) => {
    while (group.get(id) !== id) {
      group.set(id, group.get(group.get(id)));
      id = group.get(id);
    }
    return id;
  };
  for (const [from, to] of edges) group.set(find(from), find(to));
  const found = new Map();
  const part = (id) => {
    if (!found.has(find(id))) found.set(find(id), { boxes: [], edges: [] });
    return found.get(find(id));
  };
  for (const box of boxes) part(box.id).boxes.push(box);
  for (const edge of edges) part(edge[0]).edges.push(edge);
  return [...found.values()];
}

/** Boxes in layers, each below all that lead to it, in an order with few crossings. */
function layered(all, edges, { beside = 18, below = 74, height = 34 }) {
  const { boxes, depth, routes } = bent(all, edges);
  const steps = routes.flatMap((route) => route.slice(1).map((to, number) => [route[number], to]));
  const { up, down } = neighbours(boxes, steps);
  const layers = [];
  depth.forEach((level, box) => (layers[level] ??= []).push(box));
  const place = new Float64Array(boxes.length);
  const inLine = (layer, left) => {
    let x = left;
    for (const box of layer) {
      place[box] = x + boxes[box].width / 2;
      x += boxes[box].width + beside;
    }
    return x - beside;
  };
  for (const layer of layers) inLine(layer, -inLine(layer, 0) / 2);
  const mean = (others) => others.reduce((sum, other) => sum + place[other], 0) / others.length;
  for (let sweep = 0; sweep < 12; sweep++) {
    const downwards = sweep % 2 === 0, around = downwards ? up : down;
    for (const layer of downwards ? layers : [...layers].reverse()) {
      const wish = new Map(layer.map((box) => [box, around[box].length ? mean(around[box]) : place[box]]));
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      for (const pool of pools(layer, wish, boxes, beside)) inLine(pool.boxes, pool.middle - pool.width / 2);
    }
  }
  const left = Math.min(...boxes.map((box, number) => place[number] - box.width / 2));
  const corners = new Map(boxes.map((box, number) => [
    box.id, { x: place[number] - box.width / 2 - left, y: depth[number] * below, width: box.width, height },
  ]));
  const right = Math.max(...[...corners.values()].map((corner) => corner.x + corner.width), 0);
  return { corners, routes, width: right, height: Math.max(0, layers.length - 1) * below + height };
}

/**
 * Boxes with one more wherever an edge passes through a layer, and for each edge the boxes that it leads along.
 * If there were too many of them, edges run behind boxes instead: room is dearer then.
 */
function bent(all, edges) {
  const { up, down } = neighbours(all, edges);
  const boxes = [...all], depth = depths(up, down), level = new Map(all.map((box, number) => [box.id, depth[number]]));
  const bends = edges.reduce((sum, [from, to]) => sum + level.get(to) - level.get(from) - 1, 0);
  if (bends > MOST_BENDS * all.length) return { boxes, depth, routes: edges };
  const routes = edges.map(([from, to]) => {
    const route = [from];
    for (let layer = level.get(from) + 1; layer < level.get(to); layer++) {
      const id = `${from} to ${to} at ${layer}`;
      boxes.push({ id, width: BEND });
      depth.push(layer);
      route.push(id);
    }
    return [...route, to];
  });
  return { boxes, depth, routes };
}

/** By number, the boxes above and below each. */
function neighbours(boxes, edges) {
  const ids = new Map(boxes.map((box, number) => [box.id, number]));
  const down = boxes.map(() => []), up = boxes.map(() => []);
  for (const [from, to] of edges) {
    down[ids.get(from)].push(ids.get(to));
    up[ids.get(to)].push(ids.get(from));
  }
  return { up, down };
}

function depths(up, down) {
  const depth = up.map(() => 0), open = up.map((above) => above.length);
  const ready = open.flatMap((number, box) => (number === 0 ? [box] : []));
  while (ready.length) {
    const box = ready.pop();
    for (const lower of down[box]) {
      depth[lower] = Math.max(depth[lower], depth[box] + 1);
      if (--open[lower] === 0) ready.push(lower);
    }
  }
  return depth;
}

/** The boxes of a layer, as near to where they wish to be as the others let them: those that touch share a mean. */
function pools(layer, wish, boxes, beside) {
  const found = [];
  for (const box of layer) {
    let pool = { boxes: [box], width: boxes[box].width, middle: wish.get(box), weight: 1 };
    for (let last = found.at(-1); last && touches(last, pool, beside); last = found.at(-1)) {
      found.pop();
      const width = last.width + beside + pool.width, weight = last.weight + pool.weight;
      const aim = last.middle - last.width / 2 + width / 2, other = pool.middle + pool.width / 2 - width / 2;
      pool = {
        boxes: [...last.boxes, ...pool.boxes], width, weight,
        middle: (aim * last.weight + other * pool.weight) / weight,
      };
    }
    found.push(pool);
  }
  return found;
}

const touches = (a, b, beside) => a.middle + a.width / 2 + beside > b.middle - b.width / 2;
