// Reading a file, by the rules and with the messages of tacit predict: rows of numbers as float64.

function half(view, at, little) {
  const bits = view.getUint16(at, little), exponent = bits >> 10 & 31, fraction = bits & 1023;
  const size = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24;
  return bits >> 15 ? -size : size;
}
const READ = {  // by the type in the header of a .npy file
  b1: (view, at) => Number(view.getUint8(at) !== 0),
  u1: (view, at) => view.getUint8(at),
  u2: (view, at, little) => view.getUint16(at, little),
  u4: (view, at, little) => view.getUint32(at, little),
  u8: (view, at, little) => Number(view.getBigUint64(at, little)),
  i1: (view, at) => view.getInt8(at),
  i2: (view, at, little) => view.getInt16(at, little),
  i4: (view, at, little) => view.getInt32(at, little),
  i8: (view, at, little) => Number(view.getBigInt64(at, little)),
  f2: half,
  f4: (view, at, little) => view.getFloat32(at, little),
  f8: (view, at, little) => view.getFloat64(at, little),
};
const product = sides => sides.reduce((a, b) => a * b, 1);
const tuple = shape => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

function checkWidth(name, rows, columns) {
  const {width} = release;
  if (columns !== width) throw Error(`${name} has ${columns} columns, shape (${rows}, ${columns}), and must have ${width} columns, shape (n, ${width}); encode both the same way`);
}

function checkShape(name, shape) {
  if (shape.length !== 2) throw Error(`${name} has ${shape.length} dimension(s), not two (rows, columns); reshape it to one row per record`);
  if (shape.includes(0)) throw Error(`${name} has shape ${tuple(shape)}; it needs at least one row and one column, so check its source`);
}

function npyHeader(name, buffer) {
  const broken = why => Error(`${name} is truncated or not a .npy array (${why}); save it again with numpy.save`);
  const bytes = new Uint8Array(buffer), view = new DataView(buffer), magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  if (bytes.length < 12 || magic.some((byte, i) => bytes[i] !== byte)) throw broken("it does not begin as one");
  if (bytes[6] !== 1 && bytes[6] !== 2) throw broken(`its format version is (${bytes[6]}, ${bytes[7]})`);
  const start = bytes[6] === 1 ? 10 : 12, length = start === 10 ? view.getUint16(8, true) : view.getUint32(8, true);
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
  const type = /'descr':\s*'([^']*)'/.exec(header)?.[1], order = /'fortran_order':\s*(True|False)/.exec(header)?.[1];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1].split(",").filter(part => part.trim()).map(Number);
  if (type === undefined || !order || !shape) throw broken("its header states no plain array");
  if (type.endsWith("O")) throw Error(`${name} holds pickled objects, which are never read; save plain numbers instead`);
  if (/[US]\d+$/.test(type)) throw Error(`${name} holds texts, and features are numbers; encode texts first (tacit.Encoder, tacit encode), or a table with tacit.TableEncoder`);
  const known = /^([<>|=])([biuf])(\d+)$/.exec(type);
  if (!known) throw Error(`${name} has dtype ${type}; features must be real numbers, so convert it to float32`);
  const kind = known[2] + known[3], size = Number(known[3]);
  if (!READ[kind]) throw Error(`${name} has dtype ${type}, which this page does not read; convert it to float32, or use tacit predict`);
  const stated = start + length + product(shape) * size;
  if (stated > bytes.length) throw broken(`its header states ${stated} bytes and it has ${bytes.length}`);
  return {view, start: start + length, shape, read: READ[kind], kind, size, little: known[1] !== ">", fortran: order === "True"};
}

function readNpy(name, buffer) {
  const {view, start, shape, read, kind, size, little, fortran} = npyHeader(name, buffer), [count, ...sides] = shape;
  const columns = product(sides), picture = kind === "u1" && (shape.length === 3 || shape.length === 4);
  if (picture && shape.length === 4 && sides[0] !== 1 && sides[0] !== 3) throw Error(`${name} has pictures of shape ${tuple(shape)}, whose channels, 1 or 3, must come before height and width; save x.transpose(0, 3, 1, 2)`);
  if (shape.length === 2) checkWidth(name, count, columns);
  checkShape(name, picture ? [count, columns] : shape);
  if (picture) checkWidth(name, count, columns);
  const offsets = new Float64Array(columns);  // of the entries of the first row, whose columns are in C order
  for (let c = 0; c < columns; c++) {
    if (!fortran) offsets[c] = c * size;
    else for (let axis = sides.length - 1, rest = c; axis >= 0; rest = Math.floor(rest / sides[axis--])) offsets[c] += rest % sides[axis] * product(shape.slice(0, axis + 1)) * size;
  }
  const step = fortran ? size : columns * size;
  const row = i => {
    const values = new Float64Array(columns);
    for (let c = 0; c < columns; c++) values[c] = read(view, start + i * step + offsets[c], little);
    return values;
  };
  return {count, row, place: i => `row ${i}`};
}

const NUMBER = /^[ \t]*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf(inity)?)[ \t]*$/i, FINITE = /\d/;
const LABELS = ["label", "labels", "y", "target", "class"];  // usual names of the column that is left out

function cells(line) {
  if (!line.includes('"')) return line.split(",");
  const each = line.matchAll(/(?:"((?:[^"]|"")*)"|([^,]*))(,|$)/g), found = [];
  for (const [, quoted, plain, end] of each) {
    found.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (!end) break;
  }
  return found;
}

function readCsv(name, buffer) {
  let text;
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(buffer);
  } catch {
    throw Error(`${name} is not a CSV file of numbers in UTF-8; save it again`);
  }
  let names = null, features = null;
  const rows = [], lines = [];
  text.split(/\r\n|\n|\r/).forEach((line, i) => {
    if (line === "") return;
    const row = cells(line);
    if (names === null) {
      const numbers = row.filter(cell => NUMBER.test(cell)), heading = numbers.every((cell, place) => cell === String(place));
      names = heading ? row : Array.from(row, (_, place) => String(place));
      const twice = names.find((one, place) => names.indexOf(one) !== place);
      if (twice !== undefined) throw Error(`${name} has several columns '${twice}'; rename all but one`);
      if (names.includes("")) throw Error(`${name} has a column without a name, such as the index that pandas writes; leave it out with index=False, or name it`);
      const plain = Array.from(names, one => one.trim().toLowerCase());
      const label = LABELS.map(one => plain.indexOf(one)).find(place => place >= 0);
      features = Array.from(names.keys()).filter(place => place !== label);
      if (!features.length) throw Error(`${name} has no column of features; give a column for each`);
      if (heading) return;
    }
    if (row.length !== names.length) throw Error(`${name} line ${i + 1} has ${row.length} cells and the first has ${names.length}; correct it`);
    lines.push(i + 1);
    rows.push(Float64Array.from(features, place => {
      const cell = row[place];
      if (!NUMBER.test(cell)) throw Error(`${name} line ${i + 1}, column ${place + 1} is not a number; write rows of numbers with commas between them`);
      return FINITE.test(cell) ? Number(cell) : NaN;
    }));
  });
  if (names === null) throw Error(`${name} is empty; write rows of numbers with commas between them`);
  checkWidth(name, rows.length, features.length);
  checkShape(name, [rows.length, features.length]);
  return {count: rows.length, row: i => rows[i], place: i => `line ${lines[i]}`};
}

async function readRows(file) {
  const {name} = file, ending = name.slice(name.lastIndexOf(".")).toLowerCase();
  if (ending !== ".npy" && ending !== ".csv") throw Error(`${name} has an ending that this page does not read; give .npy or .csv, or use tacit predict`);
  if (file.size > release.largest) throw Error(`${name} has ${file.size} bytes, and this page reads at most ${release.largest}; use tacit predict`);
  const rows = (ending === ".npy" ? readNpy : readCsv)(name, await file.arrayBuffer());
  for (let i = 0; i < rows.count; i++) {
    const row = rows.row(i), square = dot(row, 0, row, 0, row.length);
    if (!Number.isFinite(square)) throw Error(`${name} ${rows.place(i)} is not finite (NaN, infinity, or a norm beyond float64); drop or repair that row`);
    if (square === 0) throw Error(`${name} ${rows.place(i)} is all zeros, which has no direction; drop that row`);
  }
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
  const view = new DataView(bytes.buffer), size = Number(dtype[1]);
  return Float64Array.from({length: product(shape)}, (_, i) => READ[dtype](view, i * size, true));
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

function scaler() {  // from a row to the row that the decision reads
  const {input_mean, input_scale} = release.arrays;
  if (!input_mean) return row => row;
  const mean = decoded(input_mean), scale = decoded(input_scale);
  return row => row.map((value, c) => (value - mean[c]) / scale[c]);
}

function setOf(scores) {  // positions of the labels whose probabilities reach their thresholds
  const {scale, thresholds} = release.label_sets, found = [];
  for (let k = 0; k < scores.length; k++) if (1 / (1 + Math.exp(-scale * scores[k])) >= thresholds[k]) found.push(k);
  return found;
}

function checkSeparator({separator}) {
  const ambiguous = release.classes.find(label => label.includes(separator));
  if (ambiguous !== undefined) throw Error(`label '${ambiguous}' holds ${separator}, which separates labels in the file of results; use tacit predict --label-separator`);
}

function classifier() {  // from a block of rows to positions of classes, or to the positions of each row
  if (release.label_sets) checkSeparator(release.label_sets);
  const score = scorer(), scaled = scaler(), decided = release.label_sets ? setOf : best;
  return rows => rows.map(row => decided(score(scaled(row))));
}

// Classifying a file: a message, a table, and a file to keep.

const SHOWN = 100;
const BLOCK = 64;  // rows
let job = 0, positions = null, kept = null;

async function classify(file) {
  const mine = ++job, {classes} = release;
  place("results").hidden = true;
  place("message").className = "";
  place("message").textContent = `Reading ${file.name}`;
  try {
    const rows = await readRows(file), found = new Array(rows.count);
    positions ??= await (release.arrays ? classifier : networkClassifier)();
    let paused = performance.now();
    for (let i = 0; i < rows.count; i += BLOCK) {
      const block = Array.from({length: Math.min(BLOCK, rows.count - i)}, (_, j) => rows.row(i + j));
      (await positions(block)).forEach((position, j) => found[i + j] = position);
      if (performance.now() - paused > 100) {
        place("message").textContent = `Classifying ${file.name}: ${i} of ${rows.count} rows`;
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
  const counts = new Uint32Array(classes.length), sets = release.label_sets;
  found.forEach(k => (sets ? k : [k]).forEach(one => counts[one]++));
  const named = k => sets ? k.map(one => classes[one]).join(sets.separator) : classes[k];
  place("message").textContent = `${name}: ${found.length} rows classified`;
  fill("counts", classes.map((label, k) => [label, counts[k]]));
  fill("labels", found.slice(0, SHOWN).map((k, i) => [i, named(k)]));
  place("first").textContent = found.length > SHOWN ? `The first ${SHOWN} rows; the file has all` : "All rows";
  const lines = found.map((k, i) => `${i},${quoted(named(k))}\n`);
  if (kept) URL.revokeObjectURL(kept);
  kept = URL.createObjectURL(new Blob([sets ? "row,labels\n" : "row,label\n", ...lines], {type: "text/csv"}));
  place("download").href = kept;
  place("results").hidden = false;
}

if (place("file")) {
  place("file").addEventListener("change", event => { if (event.target.files.length) classify(event.target.files[0]); });
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, event => event.preventDefault());
  document.addEventListener("drop", event => { if (event.dataTransfer.files.length) classify(event.dataTransfer.files[0]); });
}
