// Small helpers. Everything that comes from data goes in as text, never as markup.

export const byId = id => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

export async function ask(what, question = {}) {
  const answer = await fetch(`/api/${what}`, {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify(question),
  }).catch(() => { throw new Error("the console does not respond: is it still running in its terminal?"); });
  const refused = {message: "the console was restarted, or the page has lost its token: open the address that it printed"};
  const other = {message: `the console answered ${answer.status}`};
  const told = answer.status === 403 ? {error: refused} : await answer.json().catch(() => ({error: other}));
  if (told.error) throw Object.assign(new Error(told.error.message), {told: told.error});
  return told;
}

// The last of several questions counts: answers to earlier ones are dropped.
export function latest() {
  let number = 0;
  return async question => {
    const mine = ++number;
    const answer = await question();
    return mine === number ? answer : null;
  };
}

export function later(milliseconds, action) {
  let waiting = 0;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => action(...given), milliseconds);
  };
}

// An error as people read it: where, what, and what to do. `at` goes to the place in the query.
export function errorText(told, at = null) {
  const place = told.line ? `line ${told.line}, column ${told.column}` : null;
  const where = place && at ? element("button", {type: "button", class: "place", onclick: () => at(told)}, place) : place;
  const parts = [where, where ? ": " : null, told.line ? told.message : told.shown ?? told.message];
  if (told.line && told.hint) parts.push(element("span", {class: "hint"}, told.hint));
  return element("div", {class: "error"}, ...parts);
}

export const counted = number => Number(number).toLocaleString("en");

export function sized(bytes) {
  for (const unit of ["B", "kB", "MB"]) {
    if (bytes < 1000) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} GB`;
}
