// The page: tables above, the query on the left, what it finds on the right.
import {ask, byId, counted, element, errorText, later} from "./page.js";
import {Editor} from "./editor.js";
import {Live, Matches, clear, failure, select, showOpen, showWhy} from "./results.js";

const KEPT = "cepheid-query";
const tables = new Map();
const matches = new Matches(() => { byId("ties").value = "row"; changeRoles().then(run); });
const live = new Live(() => { byId("stop").disabled = true; byId("start").disabled = false; });
const current = () => byId("table").value || null;

const editor = new Editor({
  table: current,
  changed: told => {
    sessionStorage.setItem(KEPT, editor.value);
    const shown = told.errors.map(error => errorText(error, editor.goTo));
    const empty = !editor.value.trim();
    byId("errors").replaceChildren(...(shown.length ? shown : [element("p", {class: "clean"}, empty ? "Write a query; it begins with PATTERN." : "No errors.")]));
    byId("start-here").hidden = !empty;
    if (told.svg) draw(told.svg);
    else if (empty || !told.errors.length) byId("automaton").replaceChildren();
    byId("drawing").hidden = !byId("automaton").children.length;
    byId("run").disabled = byId("why").disabled = byId("forecast").disabled = byId("explain").disabled = byId("start").disabled = told.errors.length > 0 || empty || !current();
  },
});

function draw(svg) {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  if (parsed.querySelector("parsererror")) return;
  byId("automaton").replaceChildren(document.importNode(parsed.documentElement, true));
}

function choices(select, names, chosen, none) {
  const options = names.map(name => element("option", {value: name, selected: name === chosen}, name));
  if (none) options.unshift(element("option", {value: "", selected: !chosen}, none));
  select.replaceChildren(...options);
}

function take(table) {
  tables.set(table.name, table);
  choices(byId("table"), [...tables.keys()], table.name);
  showTable();
}

// What was found belongs to the events it was found in.
function forget() {
  live.stop();
  matches.run = null;
  clear();
  select("timeline");
}

// For who has written nothing yet: a query to begin with, or events to try it on.
async function offerStart() {
  const here = current();
  const offers = [];
  if (!here) {
    offers.push(element("p", {}, "No events are open. Give the path of a file above, or begin with an example:"),
      element("button", {type: "button", id: "example-data", onclick: async () => {
        try { take((await ask("example")).opened); } catch (error) { failed(error); }
      }}, "Open a day in a store"));
  } else {
    const told = await ask("example", {table: here}).catch(() => null);
    if (!told || here !== current()) return;
    offers.push(element("p", {}, "For example:"), element("pre", {}, told.query),
      element("button", {type: "button", id: "example-query", onclick: () => { editor.value = told.query; }}, "Use this query"));
  }
  byId("start-here").replaceChildren(...offers);
}

function listColumns(table) {
  const insert = text => element("button", {type: "button", class: "name", onclick: () => editor.insert(text)}, text);
  const rows = table.columns.map(column => element("tr", {}, element("td", {}, insert(column.name)), element("td", {class: "muted"}, column.type)));
  const types = table.types.slice(0, 30);
  const more = table.types.length > types.length ? [element("span", {class: "muted"}, ` … ${table.types.length - types.length} more`)] : [];
  byId("column-list").replaceChildren(element("table", {}, element("tbody", {}, ...rows)),
    ...(types.length ? [element("p", {class: "types"}, "Types: ", ...types.map(insert), ...more)] : []));
}

function failed(error) {
  byId("errors").replaceChildren(errorText(error.told ?? {message: error.message}));
}

let shownTable = null;
function showTable() {
  const table = tables.get(current());
  byId("columns").hidden = !table;
  offerStart();
  if (!table) return;
  if (shownTable !== table) forget();
  shownTable = table;
  byId("rows").textContent = `${counted(table.rows)} events`;
  listColumns(table);
  const names = table.columns.map(column => column.name);
  choices(byId("time"), names, table.roles.time);
  choices(byId("type"), names, table.roles.type, "(none)");
  byId("time-unit").value = table.roles.time_unit ?? "";
  const orders = names.includes("row") ? names : ["row", ...names];
  choices(byId("ties"), orders, table.roles.tiebreak, "(no order)");
  if (!names.includes("row")) byId("ties").options[1].textContent = "row order";
  byId("watch-label").hidden = !table.folder;
  editor.types = new Set(table.types);
  editor.paint();
  editor.check();
}

async function changeRoles() {
  try {
    const roles = {time: byId("time").value, type: byId("type").value, time_unit: byId("time-unit").value.trim(),
      tiebreak: byId("ties").value};
    take((await ask("roles", {table: current(), ...roles})).opened);
  } catch (error) {
    failed(error);
  }
}

async function doing(name, panel, action) {
  const button = byId(name);
  button.disabled = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    if (panel !== "timeline") select(panel);
    await action({text: editor.value, table: current()});
  } catch (error) {
    if (panel === "timeline") clear();
    failure(panel === "timeline" ? "matches" : panel, error);
    if (panel === "timeline") select("matches");
  } finally {
    if (window.matchMedia("(max-width: 60rem)").matches) document.querySelector(".right").scrollIntoView();  // it is below
    button.disabled = false;
    document.body.removeAttribute("aria-busy");
  }
}

const run = () => doing("run", "timeline", async asked => {
  live.stop();
  matches.show(await ask("run", asked));
  select(matches.run.timed ? "timeline" : "matches");
});

byId("run").addEventListener("click", run);
byId("why").addEventListener("click", () => doing("why", "why", async asked => showWhy(await ask("why", asked))));
byId("forecast").addEventListener("click", () => doing("forecast", "open", async asked => showOpen(await ask("forecast", asked))));
byId("explain").addEventListener("click", () => doing("explain", "plan", async asked => {
  byId("panel-plan").replaceChildren(element("pre", {class: "plan"}, (await ask("explain", asked)).plan));
}));
byId("start").addEventListener("click", () => doing("start", "timeline", async asked => {
  if (live.source) await ask("stop", {stream: live.number}).catch(() => null);
  const how = {per_second: Number(byId("per-second").value) || 1000, delay: byId("delay").value, watch: byId("watch").checked};
  matches.run = null;  // the timeline is the stream's now
  live.start((await ask("stream", {...asked, ...how})).stream);
  select("timeline");
  byId("stop").disabled = false;
}));
byId("stop").addEventListener("click", async () => {
  await ask("stop", {stream: live.number}).catch(() => null);
  live.stop();
});
byId("table").addEventListener("change", showTable);
for (const name of ["time", "type", "time-unit", "ties"]) byId(name).addEventListener("change", changeRoles);
byId("open").addEventListener("submit", async event => {
  event.preventDefault();
  try {
    const how = {time_format: byId("time-format").value, format: byId("format").value};
    take((await ask("open", {path: byId("path").value, ...how})).opened);
    byId("path").value = "";
  } catch (error) {
    failed(error);
    byId("how").open = true;
  }
});
window.addEventListener("resize", later(200, () => matches.redraw()));  // letters keep their size
document.addEventListener("keydown", event => {
  if (event.ctrlKey && event.key === "Enter" && !byId("run").disabled) { event.preventDefault(); run(); }
});
const tabs = [...document.querySelectorAll('[role="tab"]')];
for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab.id.slice(4)));
  tab.addEventListener("keydown", event => {
    const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!move) return;
    const next = tabs[(tabs.indexOf(tab) + move + tabs.length) % tabs.length];
    select(next.id.slice(4));
    next.focus();
  });
}

const light = byId("light");
function setLight(dark) {
  document.documentElement.dataset.light = dark ? "dark" : "bright";
  light.setAttribute("aria-pressed", dark ? "true" : "false");
}
const preferred = window.matchMedia("(prefers-color-scheme: dark)");
setLight(localStorage.getItem("cepheid-light") ? localStorage.getItem("cepheid-light") === "dark" : preferred.matches);
light.addEventListener("click", () => {
  const dark = document.documentElement.dataset.light !== "dark";
  localStorage.setItem("cepheid-light", dark ? "dark" : "bright");
  setLight(dark);
});

clear();
const there = await ask("tables").catch(error => { failed(error); return {tables: [], streams: []}; });
for (const table of there.tables) tables.set(table.name, table);
choices(byId("table"), [...tables.keys()], tables.keys().next().value);
editor.value = sessionStorage.getItem(KEPT) ?? new URLSearchParams(location.hash.slice(1)).get("query") ?? "";
showTable();
for (const stream of there.streams.slice(-1)) {  // one that runs elsewhere
  editor.value = stream.query;
  live.start(stream.number);
}
document.documentElement.dataset.ready = "yes";
