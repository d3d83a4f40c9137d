// Charts: drawn as wide as the page, in its colours, and again when either changes.

const charts = JSON.parse(document.getElementById("charts").textContent);
const FREE = new Set(["data", "domain", "title", "text", "tooltip"]);  // texts and values, which no colour is in
const IN_DARK = {"#0072B2": "#4FA8E0", "#D55E00": "#FF8B3D", "#009E73": "#2CC795"};  // which are dim there
const GAP = 16, LEAST = 250, MARKS = 30;  // pixels: between panels, of a panel, beside a name in a legend

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function recoloured(part, colours) {
  if (typeof part === "string") return colours[part] ?? part;
  if (Array.isArray(part)) return part.map(each => recoloured(each, colours));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, FREE.has(key) ? value : recoloured(value, colours)]));
}

function inColours(chart) {
  const text = css("--text"), line = css("--line"), soft = css("--soft");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? IN_DARK : {};
  const {config, ...rest} = recoloured(chart, {black: text, "#000000": text, white: css("--page"), ...dark});
  const labels = {labelColor: text, titleColor: text}, hidden = {aria: false};  // the chart is one picture with one text
  return {...rest, background: null, config: {
    ...config, mark: hidden,
    axis: {...config.axis, ...labels, ...hidden, gridColor: line, domainColor: soft, tickColor: soft},
    legend: {...config.legend, ...labels, ...hidden},
    title: {...config.title, ...hidden, color: text},
    view: {...config.view, stroke: line},
  }};
}

function fitLegends(part, room) {  // as many names side by side as there is room for
  if (part === null || typeof part !== "object") return;
  for (const value of Object.values(part)) {
    if (value?.legend?.columns) {
      const widest = Math.max(...value.scale.domain.map(name => name.length)) * 7.2 + MARKS;
      value.legend.columns = Math.max(1, Math.min(value.scale.domain.length, Math.floor(room / widest)));
      value.legend.labelLimit = room - MARKS;
    }
    fitLegends(value, room);
  }
}

function fitted(chart, room, beside) {  // `beside` is what axes and labels of a panel take
  const columns = Math.max(1, Math.min(chart.columns, Math.floor((room + GAP) / (LEAST + GAP))));
  const width = Math.max(120, Math.floor((room - (columns - 1) * GAP) / columns - beside));
  const concat = chart.concat.map(panel => {
    const panelWidth = Math.min(panel.width, width);
    return {...panel, width: panelWidth, title: {...panel.title, limit: panelWidth + beside}};
  });
  const shown = {...chart, columns, concat};
  fitLegends(concat, room - beside);
  return shown;
}

async function draw(name) {
  const place = document.getElementById(name).querySelector(".chart"), room = place.clientWidth;
  const actions = {export: true, source: false, compiled: false, editor: false};
  const options = {mode: "vega-lite", renderer: "svg", actions};
  for (let tries = 0, beside = 55; tries < 6; tries++) {
    const chart = fitted(structuredClone(charts[name]), room, beside);
    const {view} = await vegaEmbed(place, inColours(chart), options);
    place.querySelector("summary").setAttribute("aria-label", "Save this chart");
    const over = view.container().querySelector("svg").getBoundingClientRect().width - room;
    if (over <= 0) break;
    beside += Math.ceil(over / chart.columns);
  }
}

let drawn = 0;
async function drawAll() {
  const mine = ++drawn;
  for (const name of Object.keys(charts)) {
    if (mine !== drawn) return;
    await draw(name).catch(error => { document.getElementById(name).querySelector(".chart").textContent = error; });
  }
  document.documentElement.dataset.drawn = mine;
}

let width = document.documentElement.clientWidth, waiting = 0;
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;  // a phone's bars come and go
  width = document.documentElement.clientWidth;
  clearTimeout(waiting);
  waiting = setTimeout(drawAll, 150);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
