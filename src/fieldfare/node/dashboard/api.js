// Asking our own node, and no other: it asks the others, so that the token goes nowhere else.
// Whatever goes wrong becomes a `Trouble` whose message says it in plain words.

import { parse } from "./json.js";

export const home = new URL("../", document.baseURI);
const KEY = "fieldfare.token";

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

export class Trouble extends Error {
  /** `kind`: silent, token, denied or bad; `place`: what the node says about where it is. */
  constructor(kind, message, place = {}) {
    super(message);
    this.kind = kind;
    this.place = place;
  }
}

/** Ask our node; the answer is JSON. */
export async function ask(path, { body, text, limit = 8000 } = {}) {
  const url = new URL(path, home);
  const headers = {};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const data = text ?? (body === undefined ? undefined : JSON.stringify(body));
  if (data !== undefined) headers["Content-Type"] = "application/json";
  let response, answer;
  try {
    response = await fetch(url, {
      method: data === undefined ? "GET" : "POST",
      headers,
      body: data,
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(limit),
    });
    answer = await response.text().then(parse).catch(() => ({}));
  } catch (error) {
    if (error.name === "TimeoutError") throw new Trouble("silent", `No answer within ${limit / 1000} seconds.`);
    throw new Trouble("silent", `Nobody answers at ${url.origin}. Is the node up, and can this browser reach it?`);
  }
  if (response.ok) return answer;
  const detail = answer.detail ?? `The node answered ${response.status} ${response.statusText}.`;
  if (response.status === 401) throw new Trouble("token", token.get() ? detail : "This node wants a token.", answer);
  throw new Trouble(response.status === 403 ? "denied" : "bad", detail, answer);
}

/** The address of a node for HTTP; null if it is none: another node said it. */
export function httpOf(url) {
  const text = url.replace(/^ws/, "http").replace(/\/link\/?$/, "").replace(/\/?$/, "/");
  return /^https?:\/\//.test(text) && URL.canParse(text) ? new URL(text) : null;
}

/** The same address for a WebSocket. */
export const socketOf = (url) => String(url).replace(/^http/, "ws");
