// A session over the WebSocket of the node: it asks for one filter, and is forgotten when it goes.

import { home, socketOf, token } from "./api.js";
import { parse } from "./json.js";

const CREDIT = 400;
const PAUSES = [500, 1000, 2000, 5000, 10000];

/** The version that both sides speak: 3 for "fieldfare.v3.json". */
const versionOf = (socket) => Number(socket.protocol.match(/\d+/)[0]);

export class Listener {
  /** `heard` gets deliveries, some at a time; `told` a state (off, connecting, live, refused, lost) and why. */
  constructor(heard, told) {
    this._heard = heard;
    this._told = told;
    this._filter = null;
    this._request = 0;
    this._failures = 0;
  }

  /** Ask for such events from now on; null: for none. */
  ask(filter) {
    if (filter === this._filter) return;
    this._filter = filter;
    if (this._welcome) this._subscribe();
    else if (!this._socket && filter !== null) this._open();
  }

  again() {
    this._close();
    if (this._filter !== null) this._open();
  }

  _open() {
    clearTimeout(this._timer);
    this._told("connecting", "");
    const socket = new WebSocket(socketOf(home), ["fieldfare.v3.json", "fieldfare.v2.json"]);
    this._socket = socket;
    this._welcome = false;
    this._reason = "";
    socket.onopen = () => this._say({ is: "Hello", version: versionOf(socket), credit: CREDIT, token: token.get() });
    socket.onmessage = ({ data }) => socket === this._socket && this._take(parse(data));
    socket.onclose = () => socket === this._socket && this._lost();
  }

  _close() {
    clearTimeout(this._timer);
    this._socket?.close();
    this._socket = null;
    this._welcome = false;
    this._told("off", "");
  }

  _lost() {
    this._socket = null;
    this._welcome = false;
    if (this._reason) {
      this._told("refused", this._reason);
      return;
    }
    this._told("lost", "The node hung up or cannot be reached. Trying again.");
    const pause = PAUSES[Math.min(this._failures++, PAUSES.length - 1)];
    this._timer = setTimeout(() => this._open(), pause);
  }

  _say(frame) {
    this._socket.send(JSON.stringify(frame));
  }

  /** Each filter has an id of its own, so that late events of the former are told apart. */
  _subscribe() {
    const former = this._id;
    this._id = null;
    if (this._filter !== null) {
      this._request += 1;
      this._id = `workbench-${this._request}`;
      this._say({ is: "Subscribe", request: this._request, id: this._id, filter: this._filter });
    } else this._told("off", "");
    if (former) this._say({ is: "Unsubscribe", request: 0, id: former });
  }

  _take(frame) {
    if (frame.is === "Welcome") {
      this._welcome = true;
      this._failures = 0;
      this._id = null;
      this._subscribe();
    } else if (frame.is === "Done" && frame.request === this._request) this._told("live", "");
    else if (frame.is === "Refused" && frame.request === this._request) this._told("refused", frame.reason);
    else if (frame.is === "Bye" && frame.retry === false) this._reason = frame.reason;
    else if (frame.is === "Deliveries") {
      this._heard(frame.items.filter((item) => item[5].includes(this._id))
        .map(([, position, time, publisher, event]) => ({ position, time, publisher, event })));
      this._say({ is: "Acknowledge", number: frame.items.at(-1)[0] });
      this._say({ is: "Credit", more: frame.items.length });
    }
  }
}
