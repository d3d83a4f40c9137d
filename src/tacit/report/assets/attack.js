"use strict";
const release = JSON.parse(document.getElementById("release").textContent);
const place = name => document.getElementById(name);

// What an attacker may learn. Bounds are rounded up, to tenths of a percent.

function percentUp(share) {
  return `${(Math.ceil(1000 * share * (1 - 1e-12)) / 10).toFixed(1)}%`;
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
  place("rate-value").value = `${Number((100 * wrong).toPrecision(6))}%`;
  place("prior-value").value = `${place("prior").value}%`;
  place("found").textContent = percentUp(found);
  place("belief").textContent = percentUp(belief(prior, found, wrong));
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

place("rate").addEventListener("input", showAttack);
place("prior").addEventListener("input", showAttack);
drawCurve();
showAttack();

