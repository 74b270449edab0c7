// The timeline of matches and their rate, as SVG in the page's colours.
import {drawn, element, counted} from "./page.js";

const COLOURS = ["#3a7ca5", "#d1495b", "#3e9b68", "#c27c0e", "#7d5ba6", "#00868b", "#b0457e", "#6b7a2c"];
const RIGHT = 14, ROW = 18, TOP = 8, AXIS = 26, LONGEST = 24;

// As wide as there is room, so that letters keep their size on a phone.
const room = () => Math.min(Math.max(document.getElementById("panel-timeline").clientWidth || 900, 300), 1200);

export const colourOf = place => COLOURS[place % COLOURS.length];

// One clock format everywhere: 2024-05-04 09:30:05, without the date where all is of one day. Times have no zone.
export function timeText(value, timestamps, near) {
  if (!timestamps) return counted(Math.round(value * 1000) / 1000);
  const text = new Date(value).toISOString().replace("T", " ").replace("Z", "").replace(".000", "");
  return near !== undefined && new Date(near).toISOString().slice(0, 10) === text.slice(0, 10) ? text.slice(11) : text;
}

function ticks(low, high, timestamps, many) {
  if (!(high > low)) return [low];
  const wanted = (high - low) / many;
  const steps = timestamps
    ? [1, 5, 10, 50, 100, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5]
    : [];
  const power = 10 ** Math.floor(Math.log10(wanted));
  let step = steps.find(size => size >= wanted) ?? [1, 2, 5, 10].map(size => size * power).find(size => size >= wanted);
  if (timestamps && step === undefined) step = Math.ceil(wanted / 864e5) * 864e5;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

function axis(chart, low, high, timestamps, height, left, width) {
  const scale = value => left + (high > low ? (value - low) / (high - low) : 0.5) * (width - left - RIGHT);
  const oneDay = timestamps && new Date(low).toISOString().slice(0, 10) === new Date(high).toISOString().slice(0, 10);
  for (const at of ticks(low, high, timestamps, width > 500 ? 5 : 3)) {
    chart.append(
      drawn("line", {x1: scale(at), x2: scale(at), y1: TOP, y2: height - AXIS + 4, class: "axis"}),
      drawn("text", {x: Math.min(Math.max(scale(at), left + 20), width - 45), y: height - 8, "text-anchor": "middle"},
        timeText(at, timestamps, oneDay ? low : undefined)),
    );
  }
  return scale;
}

// The chart, and the time that all of it takes. `range` is the part that is shown; dragging calls `look` with another.
export function timeline(bars, marks, timestamps, variables, range = null, look = null) {
  if (!bars.length) return {chart: element("p", {class: "muted"}, "No matches to draw."), extent: null};
  const height = TOP + ROW * bars.length + AXIS, width = room();
  const longest = Math.max(...bars.map(bar => Math.min(bar.match.length, LONGEST)));
  const left = Math.max(40, 24 + 6.3 * longest);
  const times = [...bars.flatMap(bar => [bar.from, bar.to]), ...marks.flatMap(mark => [mark.from, mark.to, mark.at])];
  let low = Math.min(...times), high = Math.max(...times);
  const name = `Timeline: ${bars.length} matches, each a bar from its first event to its last, with a dot for each event`;
  const chart = drawn("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name});
  if (low === high) { low -= 1; high += 1; }
  const extent = [low, high];
  if (range) [low, high] = range;
  const scale = axis(chart, low, high, timestamps, height, left, width);
  const clip = `inside-${++clips}`;
  chart.append(drawn("clipPath", {id: clip}, drawn("rect", {x: left - 6, y: 0, width: width - left - RIGHT + 12, height})));
  bars.forEach((bar, place) => {
    const middle = TOP + ROW * place + ROW / 2;
    const likely = bar.likely === undefined ? "" : ` (${bar.likely.toFixed(3)})`;
    const row = drawn("g", {class: "row"});
    const label = bar.match.length > LONGEST ? bar.match.slice(0, LONGEST - 1) + "…" : bar.match;
    row.append(
      drawn("title", {}, `${bar.match}${likely}: ${timeText(bar.from, timestamps)} to ${timeText(bar.to, timestamps)}`),
      drawn("text", {x: left - 10, y: middle + 4, "text-anchor": "end", class: "label"}, label),
    );
    const inside = drawn("g", {"clip-path": `url(#${clip})`});
    inside.append(drawn("rect", {class: "span", x: scale(bar.from), y: middle - 2.5, rx: 2, height: 5,
      width: Math.max(scale(bar.to) - scale(bar.from), 1)}));
    for (const mark of marks.filter(mark => mark.rank === bar.rank)) {
      const colour = colourOf(variables.indexOf(mark.variable));
      const dot = drawn("circle", {cx: scale(mark.at), cy: middle, r: 4.5, "stroke-width": 1.6, stroke: colour,
        fill: mark.seen ? colour : "none", class: mark.seen ? "seen" : "unseen"});
      dot.append(drawn("title", {}, `${mark.variable}: ${mark.event}`));
      inside.append(dot);
    }
    row.append(inside);
    chart.append(row);
  });
  if (look) dragged(chart, [low, high], extent, left, width, height, look);
  return {chart, extent};
}

let clips = 0;

// Dragging over the chart chooses a stretch of time, a double click shows all of it.
function dragged(chart, [low, high], extent, left, width, height, look) {
  const inner = width - left - RIGHT;
  const placeOf = event => {
    const box = chart.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width * width, left), width - RIGHT);
  };
  const timeAt = x => low + (x - left) / inner * (high - low);
  let from = null, shade = null;
  chart.addEventListener("pointerdown", event => {
    if (event.button !== 0 || event.pointerType === "touch") return;  // on a phone a finger scrolls
    from = placeOf(event);
    chart.setPointerCapture(event.pointerId);
    shade = drawn("rect", {class: "chosen", x: from, y: TOP, width: 0, height: height - AXIS - TOP});
    chart.append(shade);
  });
  chart.addEventListener("pointermove", event => {
    if (from === null) return;
    const to = placeOf(event);
    shade.setAttribute("x", Math.min(from, to));
    shade.setAttribute("width", Math.abs(to - from));
  });
  chart.addEventListener("pointerup", event => {
    if (from === null) return;
    const [first, last] = [from, placeOf(event)].sort((a, b) => a - b);
    from = null;
    shade.remove();
    if (last - first > 5) look([timeAt(first), timeAt(last)]);
  });
  chart.addEventListener("dblclick", () => look(null));
}

export function legend(variables, marks) {
  const dot = attributes => drawn("svg", {width: 12, height: 12, "aria-hidden": "true"},
    drawn("circle", {cx: 6, cy: 6, r: 4.5, ...attributes}));
  const names = variables.map((name, place) => element("span", {}, dot({fill: colourOf(place)}), ` ${name}`));
  const unseen = element("span", {}, dot({fill: "none", stroke: "currentColor"}), " not seen");
  return marks.some(mark => !mark.seen) ? [...names, unseen] : names;
}

export function columns(counts, timestamps, name) {
  if (!counts.length) return element("p", {class: "muted"}, "Nothing yet.");
  const height = 130, left = 50, width = room();
  const most = Math.max(...counts.map(count => count.matches), 1);
  const chart = drawn("svg", {class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${name}; at most ${counted(most)} in one column`});
  const scale = axis(chart, counts[0].from, counts[counts.length - 1].to, timestamps, height, left, width);
  chart.append(drawn("text", {x: left - 8, y: TOP + 8, "text-anchor": "end", class: "label"}, counted(most)),
    drawn("text", {x: left - 8, y: height - AXIS + 4, "text-anchor": "end", class: "label"}, "0"));
  for (const count of counts) {
    const tall = (height - AXIS - TOP) * count.matches / most;
    const column = drawn("rect", {class: "column", x: scale(count.from), y: height - AXIS - tall, height: tall,
      width: Math.max(scale(count.to) - scale(count.from) - 1, 1)});
    column.append(drawn("title", {}, `${counted(count.matches)} from ${timeText(count.from, timestamps)}`));
    chart.append(column);
  }
  return chart;
}
