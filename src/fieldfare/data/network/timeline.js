// What is true at a time, from lists in order of time. No page is needed for it.
const timeline = (() => {
  // The place of the first item after a time.
  function after(items, time) {
    let low = 0, high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle][0] <= time) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The messages sent at most so many seconds before, each with the share of its way that it has gone.
  function underWay(messages, time, span, most) {
    const found = [];
    for (let place = after(messages, time) - 1; place >= 0 && found.length < most; place--) {
      const share = (time - messages[place][0]) / span;
      if (share >= 1) break;
      found.push({ message: messages[place], share });
    }
    return found;
  }

  // Which links are up and which brokers are down.
  function state(changes, time) {
    const up = new Set(), crashed = new Set();
    for (const [when, what, a, b] of changes) {
      if (when > time) break;
      if (what === "up") up.add(`${Math.min(a, b)} ${Math.max(a, b)}`);
      else if (what === "down") up.delete(`${Math.min(a, b)} ${Math.max(a, b)}`);
      else if (what === "crashed") crashed.add(a);
      else crashed.delete(a);
    }
    return { up, crashed };
  }

  // What was counted up to the interval that holds a time, that one included.
  function counted(counts, width, time) {
    const last = Math.min(Math.floor(time / width), counts.length - 1);
    let sum = 0;
    for (let place = 0; place <= last; place++) sum += counts[place];
    return sum;
  }

  // What lasts at a time: items are [since, until or null, ...].
  const lasting = (items, time) => items.filter(([since, until]) => since <= time && (until === null || time < until));

  return { after, underWay, state, counted, lasting };
})();
if (typeof module !== "undefined") module.exports = timeline;
