"use strict";
// Does an event match a filter? The answer is true, false, or null where only Python knows; see cli/portable.py.
const matcher = (() => {
  const UNKNOWN = Symbol("a value that a browser cannot compare");
  const ATOMS = { missing: 1, null: 2, false: 4, true: 8, list: 32, object: 64 };
  const TAGS = new Set(["$time", "$bytes", "$float", "$interval", "$literal"]);
  const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

  // Fields

  function fieldsOf(tree) {
    if (tree === null || typeof tree !== "object" || Array.isArray(tree)) throw new Error("an event is a JSON object");
    if ("specversion" in tree) throw new Error("CloudEvents need Python: give the event with --event");
    if (Object.keys(tree).length === 1 && TAGS.has(Object.keys(tree)[0])) throw new Error("tags need Python here");
    const flat = new Map();
    for (const [name, value] of Object.entries(tree)) {
      if (name === "$valid") continue;
      flatten(flat, name, name === "time" ? timeOf(value) : read(value));
    }
    return flat;
  }

  function timeOf(value) {
    const time = typeof value === "string" ? microseconds(value) : undefined;
    return time === undefined ? read(value) : time;
  }

  function read(value) {
    if (typeof value === "number") {
      const exact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
      return exact ? value : UNKNOWN;
    }
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(read);
    const names = Object.keys(value);
    if (names.length === 1 && TAGS.has(names[0])) {
      const time = names[0] === "$time" && typeof value.$time === "string" ? microseconds(value.$time) : undefined;
      return time === undefined ? UNKNOWN : time;
    }
    return new Map(names.map((name) => [name, read(value[name])]));
  }

  // Microseconds since 1970 as a BigInt, UNKNOWN for a borderline case, undefined for what is no timestamp.
  function microseconds(text) {
    const found = RFC3339.exec(text);
    if (!found) return undefined;
    const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number);
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    date.setUTCHours(hour, minute, second);
    const kept = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && date.getUTCMinutes() === minute;
    if (!kept || hour > 23 || second > 59 || year < 2 || year > 9998) return UNKNOWN;
    const fraction = BigInt(((found[7] || ".0").slice(1) + "000000").slice(0, 6));
    let shift = 0;
    if (!/^[Zz]$/.test(found[8])) {
      const [hours, minutes] = found[8].slice(1).split(":").map(Number);
      if (hours > 23 || minutes > 59) return UNKNOWN;
      shift = (found[8][0] === "-" ? -1 : 1) * (hours * 60 + minutes);
    }
    return BigInt(date.getTime() - shift * 60000) * 1000n + fraction;
  }

  function flatten(flat, path, value) {
    if (flat.has(path)) throw new Error(`the field ${path} is named twice`);
    if (Array.isArray(value)) {
      const elements = value.flat(Infinity);
      flat.set(path, elements);
      const gathered = new Map();
      for (const element of elements) {
        if (!(element instanceof Map)) continue;
        const below = new Map();
        for (const [name, item] of element) flatten(below, name, item);
        for (const [name, item] of below) {
          if (!gathered.has(name)) gathered.set(name, []);
          gathered.get(name).push(...(Array.isArray(item) ? item : [item]));
        }
      }
      for (const [name, items] of gathered) {
        if (flat.has(`${path}.${name}`)) throw new Error(`the field ${path}.${name} is named twice`);
        flat.set(`${path}.${name}`, items);
      }
    } else {
      flat.set(path, value);
      if (value instanceof Map) for (const [name, item] of value) flatten(flat, `${path}.${name}`, item);
    }
  }

  // Sets

  function compareStrings(a, b) { // by code point, as Python does
    const left = Array.from(a), right = Array.from(b);
    for (let i = 0; i < left.length && i < right.length; i++) {
      if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
    }
    return left.length - right.length;
  }
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const number = (cut) => (cut === "inf" ? Infinity : cut === "-inf" ? -Infinity : cut);

  function within(part, value, order, place = (cut) => cut) {
    if (part === null || typeof part === "boolean") return part;
    if (part.like) return within(like(part.like, value) ? part.yes : part.no, value, order);
    let inside = part.start;
    for (const [cut, side] of part.cuts) {
      const where = order(place(cut), value);
      if (where < 0 || (where === 0 && side === 0)) inside = !inside;
      else break;
    }
    return inside;
  }

  // By hand: a regular expression with several stars would backtrack without end.
  function like(tokens, text) {
    const chars = Array.from(text), wanted = tokens.flatMap((t) => (typeof t === "string" ? Array.from(t) : [t]));
    let i = 0, j = 0, star = -1, from = 0;
    while (i < chars.length) {
      if (j < wanted.length && wanted[j] === 1) { star = j++; from = i; }
      else if (j < wanted.length && (wanted[j] === 0 || wanted[j] === chars[i])) { i++; j++; }
      else if (star >= 0) { j = star + 1; i = ++from; }
      else return false;
    }
    while (j < wanted.length && wanted[j] === 1) j++;
    return j === wanted.length;
  }

  function holds(set, value) {
    if (value === UNKNOWN) return null;
    if (value === undefined) return (set.atoms & ATOMS.missing) !== 0;
    if (value === null) return (set.atoms & ATOMS.null) !== 0;
    if (typeof value === "boolean") return (set.atoms & ATOMS[value]) !== 0;
    if (typeof value === "number") return within(set.numbers, value, compare, number);
    if (typeof value === "string") return within(set.strings, value, compareStrings);
    if (typeof value === "bigint") return within(set.times, value, compare, BigInt);
    if (Array.isArray(value)) return (set.atoms & ATOMS.list) !== 0;
    return (set.atoms & ATOMS.object) !== 0;
  }

  const all = (answers) => (answers.includes(false) ? false : answers.includes(null) ? null : true);
  const any = (answers) => (answers.includes(true) ? true : answers.includes(null) ? null : false);

  function satisfies(constraint, value) {
    if (!Array.isArray(value)) return holds(constraint.values, value);
    return all([
      holds(constraint.values, value),
      ...(constraint.every ? value.map((element) => holds(constraint.every, element)) : []),
      ...(constraint.some || []).map((hit) => any(value.map((element) => holds(hit, element)))),
    ]);
  }

  function matches(branches, fields) {
    return any(branches.map((sides) => all(sides.map((side) => (side === null ? null : satisfies(side[1], fields.get(side[0])))))));
  }

  return { fieldsOf, matches };
})();
if (typeof module !== "undefined") module.exports = matcher;
