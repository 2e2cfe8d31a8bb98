// JSON as it was written: numbers that JavaScript would round keep their digits.

class Digits {
  constructor(text) {
    this.text = text;
  }
}

/** Where the browser does not tell the source of a number (`context`), it is rounded after all. */
export function parse(text) {
  const rounded = (value, source) => /^-?\d{16,}$/.test(source) && String(value) !== source;
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && rounded(value, context?.source ?? "") ? new Digits(context.source) : value);
}

/** The parts of a value on one line, as [kind, text]; kinds are key, text, number, word and mark. */
export function* parts(value) {
  if (value instanceof Digits) yield ["number", value.text];
  else if (Array.isArray(value)) {
    yield ["mark", "["];
    for (const [number, item] of value.entries()) {
      if (number) yield ["mark", ", "];
      yield* parts(item);
    }
    yield ["mark", "]"];
  } else if (value && typeof value === "object") {
    yield ["mark", "{"];
    for (const [number, [key, item]] of Object.entries(value).entries()) {
      if (number) yield ["mark", ", "];
      yield ["key", key];
      yield ["mark", ": "];
      yield* parts(item);
    }
    yield ["mark", "}"];
  } else if (typeof value === "string") yield ["text", JSON.stringify(value)];
  else yield [typeof value === "number" ? "number" : "word", String(value)];
}
