"use strict";
const release = JSON.parse(document.getElementById("release").textContent);
const place = name => document.getElementById(name);

// What an attacker may learn. Bounds are rounded up, as in the card.

function roundedUp(value, digits) {
  if (value === 0) return "0";
  const unit = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return String(Number((Math.ceil(value / unit * (1 - 1e-12)) * unit).toPrecision(digits)));
}

function normal(x) {  // the distribution function, by its series about 0
  if (Math.abs(x) > 8) return x < 0 ? 0 : 1;
  let term = x, sum = x;
  for (let n = 3; Math.abs(term) > 1e-20; n += 2) sum += term *= x * x / n;
  return 0.5 + sum * Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
}

function quantile(p) {
  let low = -8, high = 8;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (normal(middle) < p) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

// exact for Gaussian noise; else looked up at the positions of the slider, where Python computed it
function attackRate(position) {
  const {mu, rates, bounds} = release.attack;
  return mu === null ? bounds[position] : normal(quantile(rates[position]) + mu);
}

function belief(prior, found, wrong) {
  return prior * found / (prior * found + (1 - prior) * wrong);
}

function showAttack() {
  const position = Number(place("rate").value), prior = Number(place("prior").value) / 100;
  const wrong = release.attack.rates[position], found = attackRate(position);
  place("rate-value").value = `${Number((100 * wrong).toPrecision(6))} in 100`;
  place("prior-value").value = `${place("prior").value} in 100`;
  place("found").textContent = roundedUp(100 * found, 4);
  place("belief").textContent = roundedUp(100 * belief(prior, found, wrong), 4);
  place("rate").setAttribute("aria-valuetext", place("rate-value").value);
  place("prior").setAttribute("aria-valuetext", place("prior-value").value);
  const mark = place("mark");
  mark.setAttribute("cx", 100 * wrong);
  mark.setAttribute("cy", 100 - 100 * found);
}

function drawCurve() {
  const {mu, rates, bounds} = release.attack;
  const points = [[0, mu === null ? bounds[0] : 0]];
  if (mu === null) rates.forEach((rate, i) => points.push([rate, bounds[i]]));
  else for (let i = 1; i < 200; i++) points.push([(i / 200) ** 2, normal(quantile((i / 200) ** 2) + mu)]);
  points.push([1, 1]);
  place("curve").setAttribute("points", points.map(([x, y]) => `${100 * x},${100 - 100 * y}`).join(" "));
}

// Reading a file: rows of numbers as one Float64Array.

function halves(view, at, little) {
  const bits = view.getUint16(at, little), exponent = bits >> 10 & 31, fraction = bits & 1023;
  const size = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24;
  return bits >> 15 ? -size : size;
}
const READ = {
  f2: halves,
  f4: (view, at, little) => view.getFloat32(at, little),
  f8: (view, at, little) => view.getFloat64(at, little),
};

function floats(view, offset, count, kind, little) {
  const size = Number(kind[1]), read = READ[kind], values = new Float64Array(count);
  for (let i = 0; i < count; i++) values[i] = read(view, offset + i * size, little);
  return values;
}

function readNpy(name, buffer) {
  const bytes = new Uint8Array(buffer), view = new DataView(buffer);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  if (bytes.length < 12 || magic.some((byte, i) => bytes[i] !== byte)) throw Error(`${name} is no .npy file; save rows with numpy.save`);
  const long = bytes[6] > 1, length = long ? view.getUint32(8, true) : view.getUint16(8, true), start = long ? 12 : 10;
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([^']*)'/.exec(header)?.[1], order = /'fortran_order':\s*(True|False)/.exec(header)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1].split(",").filter(part => part.trim()).map(Number);
  if (!descr || !order || !shape) throw Error(`${name} has no readable .npy header; save rows with numpy.save`);
  if (!/^[<>]f[248]$/.test(descr)) throw Error(`${name} has type ${descr}, not float16, float32 or float64; save X.astype("float32")`);
  if (order === "True") throw Error(`${name} is in Fortran order; save numpy.ascontiguousarray(X)`);
  if (shape.length !== 2 || shape[1] !== release.width) throw Error(`${name} has shape (${shape.join(", ")}) and must have shape (n, ${release.width}); encode as the private rows were`);
  const count = shape[0] * shape[1], kind = descr.slice(1);
  if (bytes.length - start - length !== count * Number(kind[1])) throw Error(`${name} is cut off or too long for its shape (${shape.join(", ")}); save it again`);
  return floats(view, start + length, count, kind, descr[0] === "<");
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, NOT_FINITE = /^[+-]?(nan|inf(inity)?)$/i;

function readCsv(name, text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/), values = [];
  let first = true;
  lines.forEach((line, i) => {
    if (!line.trim()) return;
    const cells = line.split(",").map(cell => cell.trim());
    const bad = cells.find(cell => !NUMBER.test(cell) && !NOT_FINITE.test(cell));
    const named = cells.every(cell => !NUMBER.test(cell) && !NOT_FINITE.test(cell));
    const heading = first && (named || cells.every((cell, place) => cell === String(place)));  // pandas numbers columns
    first = false;
    if (heading) return;
    if (bad !== undefined) throw Error(`${name}, line ${i + 1}: ${JSON.stringify(bad.slice(0, 40))} is not a number; write rows of numbers with commas between them`);
    if (cells.length !== release.width) throw Error(`${name}, line ${i + 1} has ${cells.length} numbers and must have ${release.width}; encode as the private rows were`);
    for (const cell of cells) values.push(NOT_FINITE.test(cell) ? NaN : Number(cell));
  });
  return Float64Array.from(values);
}

async function readRows(file) {
  const name = file.name, ending = name.slice(name.lastIndexOf(".")).toLowerCase();
  if (ending !== ".npy" && ending !== ".csv") throw Error(`${name} is neither .npy nor .csv; give one of them`);
  if (file.size > release.largest) throw Error(`${name} has ${file.size} bytes, at most ${release.largest} are read here; use tacit predict`);
  const rows = ending === ".npy" ? readNpy(name, await file.arrayBuffer()) : readCsv(name, await file.text());
  const fault = rows.findIndex(value => !Number.isFinite(value));
  if (fault >= 0) throw Error(`row ${Math.floor(fault / release.width)} of ${name} is not finite (NaN or infinity); drop or repair it`);
  if (!rows.length) throw Error(`${name} holds no rows; give rows of ${release.width} numbers`);
  return rows;
}

// The classifier, as tacit.models.decisions has it, in float64.

function dot(one, i, other, j, length) {
  let sum = 0;
  for (let c = 0; c < length; c++) sum += one[i + c] * other[j + c];
  return sum;
}

function unit(row) {  // divided by its norm; zeros stay zeros
  let norm = Math.sqrt(dot(row, 0, row, 0, row.length));
  if (!(norm > 1e-150 && norm < 1e150)) {
    const largest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    if (largest === 0) return row;
    row = row.map(value => value / largest);
    norm = Math.sqrt(dot(row, 0, row, 0, row.length));
  }
  return row.map(value => value / norm);
}

function unitAbout(row, centre) {
  const direction = unit(row);
  return centre && direction.some(value => value !== 0) ? unit(direction.map((value, c) => value - centre[c])) : direction;
}

function pooled(row, pooling) {
  if (pooling === 1) return row;
  const width = Math.floor(row.length / pooling), means = new Float64Array(width);
  for (let c = 0; c < width * pooling; c++) means[Math.floor(c / pooling)] += row[c] / pooling;
  return means;
}

function decoded({dtype, shape, data}) {
  const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
  return floats(new DataView(bytes.buffer), 0, shape.reduce((a, b) => a * b, 1), dtype, true);
}

function scorer() {  // from a row to its similarity to each class; larger is nearer
  const {decision, classes} = release, n = classes.length, arrays = {};
  for (const [name, array] of Object.entries(release.arrays)) arrays[name] = decoded(array);
  const {centre} = arrays;
  if (decision.rule !== "nearest prototype") {
    const {coefficients, intercepts, axes, squares} = arrays, width = release.width;
    const p = squares ? squares.length / n : 0, along = new Float64Array(p);
    return row => {
      const direction = unitAbout(row, centre);
      along.fill(0);
      for (let c = 0; p && c < width; c++) for (let a = 0; a < p; a++) along[a] += direction[c] * axes[c * p + a];
      for (let a = 0; a < p; a++) along[a] *= along[a];
      return intercepts.map((intercept, k) => intercept + dot(direction, 0, coefficients, k * width, width) + (p && dot(along, 0, squares, k * p, p)));
    };
  }
  const {prototypes} = arrays, {pooling} = decision, width = Math.floor(release.width / pooling);
  const each = prototypes.length / n / width, rows = [];
  for (let i = 0; i < n * each; i++) rows.push(prototypes.subarray(i * width, (i + 1) * width));
  if (decision.metric === "euclidean") {
    return row => {
      const at = pooled(row, pooling), scores = new Float64Array(n);
      rows.forEach((other, i) => {
        let square = 0;
        for (let c = 0; c < width; c++) square += (at[c] - other[c]) ** 2;
        scores[Math.floor(i / each)] -= Math.sqrt(square) / each;
      });
      return scores;
    };
  }
  const means = new Float64Array(n * width), empty = new Array(n).fill(true);
  rows.forEach((other, i) => unitAbout(other, decision.centred === "rows" ? undefined : centre).forEach((value, c) => {
    const k = Math.floor(i / each);
    means[k * width + c] += value / each;
    if (value !== 0) empty[k] = false;
  }));
  return row => {
    const direction = unitAbout(pooled(row, pooling), centre);
    return Float64Array.from(empty, (none, k) => none ? -Infinity : dot(direction, 0, means, k * width, width));
  };
}

function best(scores) {  // the first of equals
  let found = 0;
  for (let k = 1; k < scores.length; k++) if (scores[k] > scores[found]) found = k;
  return found;
}

// Classifying a file: a message, a table, and a file to keep.

const SHOWN = 100;
let job = 0, score = null, kept = null;

async function classify(file) {
  const mine = ++job, {width, classes} = release;
  place("results").hidden = true;
  place("message").className = "";
  place("message").textContent = `Reading ${file.name}`;
  try {
    const rows = await readRows(file), total = rows.length / width, found = new Uint32Array(total);
    score ??= scorer();
    let paused = performance.now();
    for (let i = 0; i < total; i++) {
      found[i] = best(score(rows.subarray(i * width, (i + 1) * width)));
      if (performance.now() - paused > 100) {
        place("message").textContent = `Classifying ${file.name}: ${i} of ${total} rows`;
        await new Promise(resume => setTimeout(resume));
        if (mine !== job) return;
        paused = performance.now();
      }
    }
    if (mine === job) showResults(file.name, found, classes);
  } catch (error) {
    if (mine !== job) return;
    place("message").className = "fault";
    place("message").textContent = error.message;
  }
}

function fill(table, lines) {
  place(table).replaceChildren(...lines.map(cells => {
    const line = document.createElement("tr");
    cells.forEach(cell => line.insertCell().textContent = cell);
    return line;
  }));
}

const quoted = label => /[",\r\n]/.test(label) ? `"${label.replaceAll('"', '""')}"` : label;

function showResults(name, found, classes) {
  const counts = new Uint32Array(classes.length);
  found.forEach(k => counts[k]++);
  place("message").textContent = `${name}: ${found.length} rows classified`;
  fill("counts", classes.map((label, k) => [label, counts[k]]));
  fill("labels", Array.from(found.subarray(0, SHOWN), (k, i) => [i, classes[k]]));
  place("first").textContent = found.length > SHOWN ? `The first ${SHOWN} rows; the file has all` : "All rows";
  const lines = Array.from(found, (k, i) => `${i},${quoted(classes[k])}\n`);
  if (kept) URL.revokeObjectURL(kept);
  kept = URL.createObjectURL(new Blob(["row,label\n", ...lines], {type: "text/csv"}));
  place("download").href = kept;
  place("results").hidden = false;
}

place("rate").addEventListener("input", showAttack);
place("prior").addEventListener("input", showAttack);
drawCurve();
showAttack();
if (place("file")) {
  place("file").addEventListener("change", event => { if (event.target.files.length) classify(event.target.files[0]); });
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, event => event.preventDefault());
  document.addEventListener("drop", event => { if (event.dataTransfer.files.length) classify(event.dataTransfer.files[0]); });
}
