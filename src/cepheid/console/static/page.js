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
  });
  const told = await answer.json().catch(() => ({error: {message: `the console answered ${answer.status}`}}));
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

export const counted = number => Number(number).toLocaleString("en");

export function sized(bytes) {
  for (const unit of ["B", "kB", "MB"]) {
    if (bytes < 1000) return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toFixed(1)} GB`;
}
