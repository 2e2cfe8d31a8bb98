// Numbers as people read them: three digits, a unit, a thin space between.

const THIN = "\u2009";
const scaled = (value, unit, step, names) => {
  let power = 0;
  while (Math.abs(value) >= step * 0.9995 && power < names.length - 1) {
    value /= step;
    power += 1;
  }
  const size = Math.abs(value);
  const digits = size >= 99.95 || (power === 0 && Number.isInteger(value)) ? 0 : size >= 9.995 ? 1 : 2;
  const text = value.toFixed(digits).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
  const name = names[power] + unit;
  return name ? text + THIN + name : text;
};

/** 0, 7, 1.25 k, 31.4 M */
export const count = (value) => (value == null ? "–" : scaled(value, "", 1000, ["", "k", "M", "G", "T"]));

/** All digits, in groups of three: 1 234 567 */
export const whole = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, THIN);

/** Events and the like in a second: small ones with one digit, so that something is seen to happen. */
export function rate(value) {
  if (value == null) return "–";
  if (value > 0 && value < 0.05) return "<0.1";
  return value < 10 ? String(Math.round(value * 10) / 10) : count(Math.round(value));
}

export const bytes = (value) => (value == null ? "–" : scaled(value, "B", 1024, ["", "Ki", "Mi", "Gi", "Ti"]));

export const percent = (share) =>
  share == null ? "–" : (share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)) + THIN + "%";

/** Seconds that something took: 12.3 µs */
export function taking(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  if (seconds >= 1) return scaled(seconds, "s", 1000, [""]);
  return seconds >= 1e-3 ? scaled(seconds * 1e3, "ms", 1000, [""]) : scaled(seconds * 1e6, "µs", 1000, [""]);
}

/** Seconds since something: 3 h 12 min */
export function lasting(seconds) {
  if (seconds == null) return "–";
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0" + THIN + "s";
  const [name, size] = units[first];
  const whole = Math.floor(seconds / size);
  const next = units[first + 1];
  const rest = next && whole < 10 ? Math.floor((seconds % size) / next[1]) : 0;
  return whole + THIN + name + (rest ? " " + rest + THIN + next[0] : "");
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** The time of day of a time in seconds: 14:03:07.250 */
export const timeOfDay = (seconds) =>
  clock.format(seconds * 1000) + "." + String(Math.floor(seconds * 1000) % 1000).padStart(3, "0");

export const plural = (number, one, many = one + "s") => `${count(number)} ${number === 1 ? one : many}`;
