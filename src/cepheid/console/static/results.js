// What a run, a diagnosis and a stream look like.
import {ask, byId, counted, drawn, element, errorText, sized} from "./page.js";
import {columns, legend, timeline} from "./charts.js";

const PAGE = 40;

export function showNumbers(numbers) {
  byId("numbers").replaceChildren(...numbers.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value, warning]) => element("li", {class: warning ? "warning" : null}, element("b", {}, value), element("span", {}, name))));
}

export function select(name) {
  for (const tab of document.querySelectorAll('[role="tab"]')) {
    const here = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", here ? "true" : "false");
    tab.tabIndex = here ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !here;
  }
}

export function failure(panel, error) {
  const told = element("div", {class: "failed", role: "alert"}, errorText(error.told ?? {message: String(error.message ?? error)}));
  if (panel !== "timeline") return byId(`panel-${panel}`).replaceChildren(told);
  byId("rates").replaceChildren();  // the timeline keeps its parts for the next run
  byId("timeline").replaceChildren(told);
}

// The page as it is before anything was run.
export function clear() {
  for (const name of ["numbers", "rates", "legend", "timeline", "panel-matches", "panel-why", "panel-open", "panel-plan"]) byId(name).replaceChildren();
  for (const name of ["remark", "pages", "zoom"]) byId(name).hidden = true;
  byId("tab-matches").textContent = "Matches";
  for (const name of ["timeline", "panel-matches", "panel-why", "panel-open", "panel-plan"])
    byId(name).replaceChildren(element("p", {class: "muted"}, "No query has run on these events yet."));
}

function matchTable(names, rows) {
  const head = element("tr", {}, ...names.map(name => element("th", {scope: "col"}, name)));
  const lines = rows.map(row => element("tr", {}, ...row.map((cell, place) => element("td", {"data-name": names[place]}, cell))));
  return element("table", {class: "cards"}, element("thead", {}, head), element("tbody", {}, ...lines));
}

const variablesOf = marks => [...new Set(marks.map(mark => mark.variable))].sort();

export class Matches {
  constructor(takeRowOrder) {
    this.takeRowOrder = takeRowOrder;
    byId("earlier").addEventListener("click", () => this.turn(-PAGE));
    byId("later").addEventListener("click", () => this.turn(PAGE));
    byId("closer").addEventListener("click", () => this.zoom(0.5));
    byId("farther").addEventListener("click", () => this.zoom(2));
    byId("whole").addEventListener("click", () => this.look(null));
  }

  // A part of the time that the timeline shows; null: all of it.
  look(range) {
    this.range = range;
    this.draw();
  }

  zoom(by) {
    const [low, high] = this.range ?? this.extent, middle = (low + high) / 2, half = (high - low) / 2 * by;
    const [first, last] = this.extent;
    const range = [Math.max(middle - half, first), Math.min(middle + half, last)];
    this.look(range[0] <= first && range[1] >= last ? null : range);
  }

  draw() {
    const page = this.shown, variables = variablesOf(page.marks);
    const made = timeline(page.bars, page.marks, this.run.timestamps, variables, this.range, range => this.look(range));
    this.extent = made.extent;
    byId("timeline").replaceChildren(made.chart);
    byId("zoom").hidden = !page.bars.length;
    byId("whole").disabled = byId("farther").disabled = !this.range;
  }

  show(run) {
    this.run = run;
    const noun = run.found.slice(run.found.indexOf(" ") + 1);
    const many = {match: "matches", total: "totals", row: "rows"}[noun] ?? noun;
    byId("tab-matches").textContent = many[0].toUpperCase() + many.slice(1);
    byId("remark").hidden = !run.ties;
    if (run.ties) {
      const button = element("button", {type: "button", id: "row-order", onclick: this.takeRowOrder}, "Use row order");
      byId("remark").replaceChildren(run.ties, " ", button);
    }
    showNumbers([
      [noun, counted(run.matches) + (run.truncated ? " at least" : ""), !run.matches],
      ["events", counted(run.events)],
      ["seconds", run.seconds.toFixed(2)],
      ["events per second", counted(Math.round(run.events / Math.max(run.seconds, 1e-6)))],
      ["engine", run.engine],
    ]);
    byId("rates-title").textContent = "Matches over time";
    this.noun = many;
    this.page(run);
    this.redraw();
  }

  redraw() {
    if (!this.run?.timed) return;
    byId("rates").replaceChildren(columns(this.run.over_time, this.run.timestamps, "Matches over time"));
    this.draw();
  }

  page(page) {
    this.shown = page;
    byId("legend").replaceChildren(...legend(variablesOf(page.marks), page.marks));
    this.range = null;
    if (this.run.timed) this.draw();
    byId("panel-matches").replaceChildren(page.rows.length ? matchTable(page.columns, page.rows) : element("p", {class: "muted"}, `No ${this.noun}.`));
    if (!this.run.timed) {
      byId("rates").replaceChildren();
      byId("zoom").hidden = true;
      byId("timeline").replaceChildren(element("p", {class: "muted"}, "These rows have no time; see the table."));
    }
    const last = page.first + page.rows.length;
    byId("pages").hidden = this.run.matches <= PAGE;
    byId("place").textContent = `${counted(page.first + 1)} to ${counted(last)} of ${counted(this.run.matches)}`;
    byId("earlier").disabled = page.first === 0;
    byId("later").disabled = last >= this.run.matches;
    this.first = page.first;
  }

  async turn(by) {
    try {
      this.page(await ask("more", {result: this.run.result, first: Math.max(0, this.first + by)}));
    } catch (error) {
      failure("timeline", error);
    }
  }
}

export function showWhy(told) {
  const [found, among] = told.verdict;
  const parts = [element("p", {}, element("strong", {}, found), ` ${among}`)];
  if (told.hints.length) {
    parts.push(element("h3", {}, "Likely causes"), element("ul", {class: "hints"},
      ...told.hints.map(hint => element("li", {}, hint.text, " ", element("code", {}, hint.code)))));
  }
  if (told.closest) {
    parts.push(element("h3", {}, "Closest to a match"), matchTable(["event", ""], told.closest.events),
      element("p", {}, "stopped by ", element("strong", {}, told.closest.stopped_by), `: ${told.closest.detail}`));
  }
  for (const section of told.sections) {
    const rows = section.rows.map(row => element("tr", {class: `${row.look} ${row.indent ? "deep" : ""}`.trim()},
      element("td", {}, row.text), element("td", {}, row.number)));
    parts.push(element("table", {class: "counts"}, element("caption", {}, section.title),
      element("thead", {}, element("tr", {}, ...section.columns.map(name => element("th", {scope: "col"}, name)))),
      element("tbody", {}, ...rows)));
  }
  byId("panel-why").replaceChildren(...parts);
}

// How probable it is, as a bar.
function bar(share) {
  const shape = {width: 100, height: 10, viewBox: "0 0 100 10", class: "bar", role: "img", "aria-label": `${Math.round(share * 100)} percent`};
  return drawn("svg", shape, drawn("rect", {width: 100, height: 10, class: "rest"}), drawn("rect", {width: Math.round(share * 100), height: 10, class: "part"}));
}

// When it completes, from now on: the interval as a line, the median as a dot.
function when([low, middle, high], told) {
  const place = share => 5 + 190 * share;
  return drawn("svg", {width: 200, height: 12, viewBox: "0 0 200 12", class: "when", role: "img", "aria-label": told},
    drawn("line", {x1: 5, x2: 195, y1: 6, y2: 6, class: "axis"}), drawn("line", {x1: place(low), x2: place(high), y1: 6, y2: 6, class: "span"}),
    drawn("circle", {cx: place(middle), cy: 6, r: 4, class: "middle"}));
}

// The open partial matches, the most probable ones first.
export function showOpen(told) {
  if (!told.open) return byId("panel-open").replaceChildren(element("p", {class: "muted"}, "No partial match is open at the end of these events."));
  const names = ["probability", "waiting for", "expected", "when", "held"];
  const rows = told.rows.map(row => [
    element("span", {class: "pair"}, bar(row.probability), `${(row.probability * 100).toFixed(1)}%`), row.waiting_for, row.expected,
    when(row.line, `expected ${row.expected}, with 90% between ${row.between}`), row.held.join("\n")]);
  const more = told.open > told.rows.length ? `; the ${counted(told.rows.length)} most probable ones are shown` : "";
  byId("panel-open").replaceChildren(element("p", {},
    `${counted(told.open)} open partial ${told.open === 1 ? "match" : "matches"} at ${told.at}${more}. A line is the 90% interval of the completion, a dot its median.`),
    matchTable(names, rows));
}

// Matches of a stream: the newest rows of the timeline, and how many came in each step.
export class Live {
  constructor(ended) {
    this.ended = ended;
    this.source = null;
  }

  start(number) {
    this.stop();
    Object.assign(this, {number, bars: [], marks: [], steps: [], begin: performance.now(), rank: 0, variables: []});
    clear();
    byId("rates-title").textContent = "Matches per step of the stream";
    this.source = new EventSource(`/api/stream/${number}`);
    this.source.onmessage = event => this.hear(JSON.parse(event.data));
    this.source.onerror = () => this.stop();
  }

  stop() {
    if (!this.source) return;
    this.source.close();
    this.source = null;
    this.ended();
  }

  hear(news) {
    if (news.kind === "end") return this.stop();
    if (news.kind === "error") return failure("timeline", {told: news.error});
    const shift = this.rank;
    for (const bar of news.bars) this.bars.push({...bar, rank: bar.rank + shift});
    for (const mark of news.marks) this.marks.push({...mark, rank: mark.rank + shift});
    this.rank += news.bars.length;
    this.bars = this.bars.slice(-PAGE);
    const oldest = this.bars[0]?.rank ?? 0;
    this.marks = this.marks.filter(mark => mark.rank >= oldest);
    this.steps.push({from: this.steps.length, to: this.steps.length + 1, matches: news.found});
    this.variables = [...new Set([...this.variables, ...variablesOf(news.marks)])].sort();
    const numbers = news.numbers, seconds = (performance.now() - this.begin) / 1000;
    showNumbers([
      ["events", counted(numbers.events)],
      ["events per second", counted(Math.round(numbers.rate ?? numbers.events / Math.max(seconds, 0.25)))],
      ["matches", counted(numbers.matches)],
      ["late events", counted(numbers.late), numbers.late > 0],
      ["events kept", counted(numbers.retained)],
      ["state", sized(numbers.state_bytes)],
      ["ms for a step", numbers.step_seconds === undefined ? null : (numbers.step_seconds * 1000).toFixed(1)],
      ["newest event", numbers.newest],
      ["watermark", typeof numbers.watermark === "string" ? numbers.watermark.replace("T", " ").replace("Z", "") : null],
    ]);
    byId("legend").replaceChildren(...legend(this.variables, this.marks));
    byId("timeline").replaceChildren(timeline(this.bars, this.marks, news.timestamps, this.variables).chart);
    const ties = numbers.ties ?? 0;
    byId("remark").hidden = !ties;
    if (ties) byId("remark").replaceChildren(`${counted(ties)} events share their time and key with another: events with the same time do not follow each other; choose 'row order' under Ties for the order in which they come.`);
    const steps = this.steps.slice(-60);
    for (let at = this.steps.length; steps.length < 20; at++) steps.push({from: at, to: at + 1, matches: 0});
    byId("rates").replaceChildren(columns(steps, false, "Matches per step of the stream"));
    if (news.rows.length) byId("panel-matches").replaceChildren(matchTable(news.columns, news.rows));
  }
}
