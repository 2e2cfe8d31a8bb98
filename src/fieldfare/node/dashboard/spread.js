// Where to draw the nodes of an overlay: arithmetic on a graph, without a page.

/**
 * Places for the nodes of an overlay, and how far apart the nearest are. Nodes start on rings around the middle of the
 * tree, so that no links cross; springs and repulsion even that out; then it is turned such that they stand as far
 * apart as the room lets them. Same graph, same places, but for mirroring: what was known before stays on its side.
 */
export function spread(names, links, width, height, before = new Map()) {
  if (names.length === 0) return { places: new Map(), gap: Infinity };
  const points = rings(names, links);
  const index = new Map(points.map((point) => [point.name, point]));
  const springs = links.map(([a, b]) => [index.get(a), index.get(b)]).filter(([a, b]) => a && b);
  const turns = Math.max(40, Math.min(400, Math.round(2e6 / (names.length ** 2 + 1))));
  for (let turn = 0; turn < turns; turn++) relax(points, springs, 30 * (1 - turn / turns) + 0.5);
  lengthwise(points);
  let best = null;
  for (let step = 0; step < ANGLES; step++) {
    const some = turned(points, (step * Math.PI) / ANGLES);
    if (before.size) keepSides(some, before);
    const places = fitted(some, width, height), gap = nearest([...places.values()]);
    if (!best || gap > best.gap * 1.05) best = { places, gap };
  }
  return best;
}

const LENGTH = 150;
const STRETCH = 1.4;
const ANGLES = 24;

function rings(names, links) {
  const near = new Map(names.map((name) => [name, []]));
  for (const [a, b] of links) {
    near.get(a)?.push(b);
    near.get(b)?.push(a);
  }
  const points = [], seen = new Set(), parts = [];
  const grow = (name) => {
    seen.add(name);
    const below = near.get(name).filter((other) => near.has(other) && !seen.has(other));
    for (const other of below) seen.add(other);
    const branches = below.map(grow);
    return { name, branches, leaves: Math.max(1, branches.reduce((sum, branch) => sum + branch.leaves, 0)) };
  };
  const place = (tree, from, to, depth) => {
    const angle = (from + to) / 2;
    const far = depth * LENGTH;
    points.push({ name: tree.name, fx: 0, fy: 0, x: Math.cos(angle) * far, y: Math.sin(angle) * far });
    for (const branch of tree.branches) {
      const share = ((to - from) * branch.leaves) / tree.leaves;
      place(branch, from, from + share, depth + 1);
      from += share;
    }
  };
  const far = new Map(names.map((name) => [name, eccentricity(name, near)]));
  for (const name of [...names].sort((a, b) => far.get(a) - far.get(b))) if (!seen.has(name)) parts.push(grow(name));
  const leaves = parts.reduce((sum, part) => sum + part.leaves, 0);
  const root = parts.length === 1 ? parts[0] : { name: null, branches: parts, leaves };
  place(root, 0, 2 * Math.PI, 0);
  return points.filter((point) => point.name !== null);
}

/** How many links away the farthest node is. */
function eccentricity(name, near) {
  const seen = new Set([name]);
  let ring = [name], far = 0;
  for (; ring.length; far++) {
    ring = ring.flatMap((one) => near.get(one)).filter((other) => near.has(other) && !seen.has(other));
    for (const other of ring) seen.add(other);
  }
  return far;
}

function push(point, x, y) {
  point.fx += x;
  point.fy += y;
}

function relax(points, springs, most) {
  for (const point of points) point.fx = point.fy = 0;
  for (let i = 0; i < points.length; i++)
    for (let j = 0; j < i; j++) {
      const a = points[i], b = points[j];
      const dx = a.x - b.x || 0.01, dy = a.y - b.y || 0.01;
      const force = 1.6 * (LENGTH / Math.hypot(dx, dy)) ** 2.6;
      push(a, dx * force, dy * force);
      push(b, -dx * force, -dy * force);
    }
  for (const [a, b] of springs) {
    const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1, force = (2.5 * (far - LENGTH)) / far;
    push(a, dx * force, dy * force);
    push(b, -dx * force, -dy * force);
  }
  for (const point of points) {
    const size = Math.hypot(point.fx, point.fy) || 1, step = Math.min(size * 0.12, most) / size;
    point.x += point.fx * step;
    point.y += point.fy * step;
  }
}

/** Move points to around zero, and turn them so that they extend along x most. */
function lengthwise(points) {
  const mean = (of) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const mx = mean((point) => point.x), my = mean((point) => point.y);
  for (const point of points) {
    point.x -= mx;
    point.y -= my;
  }
  const angle = Math.atan2(2 * mean((p) => p.x * p.y), mean((p) => p.x * p.x - p.y * p.y)) / 2;
  for (const [number, point] of turned(points, -angle).entries()) points[number] = point;
}

function turned(points, angle) {
  const cos = Math.cos(angle), sin = Math.sin(angle);
  return points.map((point) => ({ ...point, x: point.x * cos - point.y * sin, y: point.x * sin + point.y * cos }));
}

/** Mirror points so that those known before stay on their sides. */
function keepSides(points, before) {
  const known = [...before.values()];
  for (const axis of ["x", "y"]) {
    const middle = known.reduce((sum, place) => sum + place[axis], 0) / known.length;
    const side = ({ name }) => (before.has(name) ? before.get(name)[axis] - middle : 0);
    const agree = points.reduce((sum, point) => sum + side(point) * point[axis], 0);
    if (agree < 0) for (const point of points) point[axis] = -point[axis];
  }
}

function fitted(points, width, height) {
  const xs = points.map((point) => point.x), ys = points.map((point) => point.y);
  const left = Math.min(...xs), top = Math.min(...ys), wide = Math.max(...xs) - left, high = Math.max(...ys) - top;
  const across = wide > 1 ? width / wide : Infinity, down = high > 1 ? height / high : Infinity;
  const even = Math.min(across, down, 2.2); // stretched a little, to fill the room
  const sx = Math.min(across, even * STRETCH), sy = Math.min(down, even * STRETCH);
  const dx = (width - wide * sx) / 2, dy = (height - high * sy) / 2;
  return new Map(points.map((point) => [
    point.name,
    { x: wide > 1 ? (point.x - left) * sx + dx : width / 2, y: high > 1 ? (point.y - top) * sy + dy : height / 2 },
  ]));
}

/** How far apart the two nearest of some points are. */
function nearest(points) {
  let least = Infinity;
  for (const [number, a] of points.entries())
    for (const b of points.slice(0, number)) least = Math.min(least, Math.hypot(a.x - b.x, a.y - b.y));
  return least;
}
