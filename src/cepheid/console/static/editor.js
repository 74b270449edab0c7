// The editor: a textarea with the same text painted behind it, squiggles under errors, and offers while one types.
import {ask, byId, element, later, latest} from "./page.js";

const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|[\p{L}_][\p{L}\p{N}_]*|\d[\d_.]*%?|\s+|./gsu;
const WORDS = new Set(("pattern event sequence seq any where within threshold confidence return output and or not in " +
  "between is null as by all maximal top events true false summarise every until define match_recognize partition order measures define").split(" "));

export class Editor {
  constructor({table, changed}) {
    this.table = table;
    this.changed = changed;
    this.text = byId("text");
    this.painted = byId("painted");
    this.offers = byId("offers");
    this.items = [];
    this.chosen = 0;
    this.errors = [];
    this.lastCheck = latest();
    this.lastOffer = latest();
    const checkSoon = later(180, () => this.check());
    this.text.addEventListener("input", () => { this.errors = []; this.paint(); checkSoon(); this.offer(); });
    this.text.addEventListener("scroll", () => { this.painted.scrollTop = this.text.scrollTop; });
    this.text.addEventListener("keydown", event => this.key(event));
    this.text.addEventListener("blur", () => this.close());
    new ResizeObserver(() => { this.painted.style.height = `${this.text.offsetHeight}px`; }).observe(this.text);
  }

  // The cursor at the place of an error.
  goTo = error => {
    this.text.focus();
    this.text.setSelectionRange(error.start, Math.max(error.end ?? 0, error.start + 1));
  };

  insert(text) {
    this.text.focus();
    this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.text.dispatchEvent(new Event("input"));
  }

  get value() { return this.text.value; }

  set value(text) {
    this.text.value = text;
    this.errors = [];
    this.paint();
    this.check();
  }

  paint() {
    const parts = [];
    let at = 0;
    for (const token of this.value.match(TOKEN) ?? []) {
      const end = at + token.length;
      const wrong = this.errors.some(error => error.start !== null && error.start < end && at < Math.max(error.end, error.start + 1));
      const kind = /^['"]/.test(token) ? "quoted" : /^\d/.test(token) ? "digits"
        : WORDS.has(token.toLowerCase()) ? "keyword" : token.startsWith("`") || this.types?.has(token) ? "known" : "";
      parts.push(kind || wrong ? element("span", {class: `${kind} ${wrong ? "wrong" : ""}`.trim()}, token) : token);
      at = end;
    }
    if (this.errors.some(error => error.start !== null && error.start >= at)) parts.push(element("span", {class: "wrong"}, " "));
    this.painted.replaceChildren(...parts, "\n");
  }

  async check() {
    try {
      const told = await this.lastCheck(() => ask("check", {text: this.value, table: this.table()}));
      if (told === null) return;
      this.errors = told.errors.filter(error => error.start !== undefined);
      this.paint();
      this.changed(told);
    } catch (error) {
      this.changed({errors: [error.told ?? {message: String(error), shown: String(error)}], svg: null});
    }
  }

  async offer(asked = false) {
    const position = this.text.selectionStart;
    const before = this.value.slice(0, position);
    if (!asked && !/[\p{L}_.[(]$/u.test(before)) return this.close();
    const told = await this.lastOffer(() => ask("complete", {text: this.value, position, table: this.table()})).catch(() => null);
    if (told === null || this.text.selectionStart !== position || document.activeElement !== this.text) return;
    this.items = told.items;
    this.start = told.start;
    this.chosen = 0;
    if (!this.items.length) return this.close();
    this.show();
  }

  show() {
    this.offers.replaceChildren(...this.items.map((item, place) => element("li", {
      role: "option", id: `offer-${place}`, "aria-selected": place === this.chosen ? "true" : "false",
      onmousedown: event => { event.preventDefault(); this.chosen = place; this.accept(); },
    }, element("span", {}, item.label), element("span", {class: "kind"}, item.detail || item.kind))));
    const {left, top} = this.caret(this.start);
    this.offers.hidden = false;
    this.offers.style.left = `${Math.min(left, Math.max(this.text.clientWidth - 240, 0))}px`;
    this.offers.style.top = `${top + 22}px`;
    this.text.setAttribute("aria-expanded", "true");
    this.text.setAttribute("aria-activedescendant", `offer-${this.chosen}`);
    this.offers.children[this.chosen]?.scrollIntoView({block: "nearest"});
  }

  close() {
    this.offers.hidden = true;
    this.items = [];
    this.text.setAttribute("aria-expanded", "false");
    this.text.removeAttribute("aria-activedescendant");
  }

  // Where a character stands: as far as in a copy of the text that ends there.
  caret(position) {
    const copy = this.painted.cloneNode(false);
    const end = element("span", {}, "\u200b");
    copy.append(this.value.slice(0, position), end);
    copy.style.visibility = "hidden";
    this.painted.after(copy);
    const place = {left: end.offsetLeft, top: end.offsetTop - this.text.scrollTop};
    copy.remove();
    return place;
  }

  accept() {
    const item = this.items[this.chosen];
    if (!item) return;
    const end = this.text.selectionStart;
    const after = item.kind === "variable" ? "." : item.label === "SEQ" || item.label === "ANY" || item.kind === "function" ? "(" : item.kind === "keyword" ? " " : "";
    this.text.setRangeText(item.label + after, this.start, end, "end");
    this.close();
    this.text.dispatchEvent(new Event("input"));
  }

  key(event) {
    if (event.ctrlKey && event.key === " ") { event.preventDefault(); this.offer(true); return; }
    if (this.offers.hidden) return;
    const move = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (move) {
      event.preventDefault();
      this.chosen = (this.chosen + move + this.items.length) % this.items.length;
      this.show();
    } else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey)) {
      event.preventDefault();
      this.accept();
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }
}
