// How a filter stands to those of a node: what both covers and is covered is the same set of events.

export function relations({ covers, covered_by: above, overlaps }) {
  const over = new Set(above), under = new Set(covers);
  return {
    equal: covers.filter((filter) => over.has(filter)),
    covers: covers.filter((filter) => !over.has(filter)),
    coveredBy: above.filter((filter) => !under.has(filter)),
    overlaps,
  };
}
