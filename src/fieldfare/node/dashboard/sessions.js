// The sessions of this node, some at a time; one that is chosen shows its filters.

import { ask } from "./api.js";
import { $, h, say } from "./dom.js";
import { lasting, whole } from "./format.js";

const PAGE = 50;
const EVERY = 2000;
const HTTP = "~http";

export class Sessions {
  constructor() {
    this._offset = 0;
    this._chosen = null;
    $("earlier").addEventListener("click", () => this._turn(-1));
    $("later").addEventListener("click", () => this._turn(1));
    setInterval(() => $("sessions").checkVisibility() && !document.hidden && this.refresh(), EVERY);
  }

  async refresh() {
    try {
      this._show(await ask(`admin/sessions?limit=${PAGE}&offset=${this._offset}`));
      if (this._chosen) await this._choose(this._chosen);
      $("sessions-trouble").hidden = true;
    } catch (trouble) {
      $("sessions-trouble").hidden = false;
      say($("sessions-trouble"), trouble.message);
    }
  }

  _turn(step) {
    this._offset = Math.max(0, this._offset + step * PAGE);
    this.refresh();
  }

  _show({ total, offset, items }) {
    $("pages").hidden = total <= PAGE;
    $("later").disabled = offset + items.length >= total;
    $("earlier").disabled = offset === 0;
    say($("page"), `${offset + 1} to ${offset + items.length} of ${total}`);
    const focused = document.activeElement?.dataset?.session;
    $("session-rows").replaceChildren(...items.map((session) => this._row(session)));
    if (focused) $("session-rows").querySelector(`[data-session="${CSS.escape(focused)}"]`)?.focus();
    $("no-sessions").hidden = items.length > 0;
  }

  _row(session) {
    const { name, here, durable, pending, acknowledged, dropped, subscriptions, members, devices } = session;
    const button = h("button", { class: "plain", "data-session": name, onclick: () => this._choose(name) }, name);
    return h("tr", { class: name === this._chosen ? "chosen" : "" },
      h("th", { scope: "row" }, button, name === HTTP && h("small", {}, " all who publish over HTTP")),
      h("td", {}, h("i", { class: here ? "dot up" : "dot away" }), here ? "here" : "away"),
      h("td", {}, members ? `shared by ${whole(members)}` : devices ? `devices: ${whole(devices)}` : durable ? "durable" : h("span", { class: "hint" }, "until it goes")),
      h("td", { class: "number" }, whole(pending)),
      h("td", { class: "number" }, whole(acknowledged)),
      h("td", { class: dropped ? "number bad" : "number" }, whole(dropped)),
      h("td", { class: "number" }, whole(subscriptions)));
  }

  async _choose(name) {
    this._chosen = name;
    try {
      const session = await ask(`admin/sessions/${encodeURIComponent(name)}`);
      if (name !== this._chosen) return;
      for (const row of $("session-rows").rows)
        row.classList.toggle("chosen", row.querySelector("button").dataset.session === name);
      this._detail(session);
    } catch (trouble) {
      this._chosen = null;
      $("session-detail").replaceChildren(h("p", { class: "hint" }, trouble.message));
    }
  }

  _detail(session) {
    const listed = (title, filters) => [
      h("h3", {}, title, h("b", {}, whole(filters.length))),
      filters.length
        ? h("ul", { class: "filters" }, filters.map(([id, filter]) =>
            h("li", {}, h("small", {}, id), h("code", {}, filter))))
        : h("p", { class: "hint" }, "None."),
    ];
    const since = session.seen ? lasting(Date.now() / 1000 - session.seen) : "";
    $("session-detail").replaceChildren(
      h("h2", {}, session.name),
      h("p", { class: "hint" }, `${session.here ? "Here" : "Away"}${since ? ` for ${since}` : ""}.`,
        session.owner ? ` Belongs to ${session.owner}.` : ""),
      ...this._members(session),
      ...this._devices(session),
      ...listed("Wants", Object.entries(session.wanted)),
      ...listed("Promises", Object.entries(session.promised)));
  }

  _devices({ copies }) {
    if (!copies?.length) return [];
    return [
      h("h3", {}, "Devices", h("b", {}, whole(copies.length))),
      h("ul", { class: "filters" }, copies.map(({ name, here, pending, dropped }) =>
        h("li", {}, h("small", {}, name), `${here ? "here" : "away"}, ${whole(pending)} waiting, ${whole(dropped)} dropped`))),
    ];
  }

  _members({ sharing, key }) {
    if (!sharing?.length) return [];
    return [
      h("h3", {}, key ? `Shared by ${key}` : "Shared by", h("b", {}, whole(sharing.length))),
      h("ul", { class: "filters" }, sharing.map(({ name, holds, credit }) =>
        h("li", {}, h("small", {}, name || "a member"), `holds ${whole(holds)}, can take ${whole(credit)} more`))),
    ];
  }
}
