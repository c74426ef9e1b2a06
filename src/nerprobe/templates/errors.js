"use strict";
// Texts reach the page as text nodes only, so nothing in a corpus can become markup.
const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("choice");
const SIDES = ["only A right", "only B right", "only A wrong", "only B wrong"];
const GOLD = "gold";
const goldOf = new Set(data.gold);

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function mentionOf(number) {
  const [item, type, first, stop, seen] = data.mentions[number];
  return { number, item, type, first, stop, seen };
}

function predictedOf(model) {
  const missed = new Set(model.wrong.map(([, gold]) => gold));
  const right = data.gold.filter((number) => !missed.has(number));
  return new Set([...right, ...model.wrong.map(([, , said]) => said).filter((number) => number >= 0)]);
}

// An entry is one thing to look at: an error against gold, or a mention that only one of two models predicts.
function errorsOf(model) {
  return model.wrong.map(([kind, gold, said]) => ({ kind, numbers: [gold, said].filter((number) => number >= 0) }));
}

function differencesOf(a, b) {
  const [one, other] = [predictedOf(a), predictedOf(b)];
  const only = (from, without, side) => [...from].filter((number) => !without.has(number))
    .map((number) => ({ kind: (goldOf.has(number) ? 0 : 2) + side, numbers: [number] }));
  return [...only(one, other, 0), ...only(other, one, 1)];
}

function describe(entry, kinds) {
  const [first, second] = entry.numbers.map(mentionOf);
  const quoted = (mention) => {
    const [, words, gaps] = data.items[mention.item];
    const parts = [];
    for (let i = mention.first; i < mention.stop; i++) parts.push(i > mention.first ? gaps[i] + words[i] : words[i]);
    return el("bdi", {}, `“${parts.join("")}”`);
  };
  const type = (mention) => data.types[mention.type];
  const line = [el("b", {}, kinds[entry.kind]), " ", quoted(first), ` ${type(first)}`];
  if (second) line.push(", predicted ", quoted(second), ` ${type(second)}`);
  line.push(el("span", { class: "soft" }, first.seen ? ", seen in train" : ", not seen in train"));
  return line;
}

// Words and gaps become runs that lie in the same mentions; a tag follows where a mention ends.
function markedText(item, layers, pair) {
  const [, words, gaps] = data.items[item];
  const here = layers.map(({ name, numbers }) => ({ name, mentions: numbers.map(mentionOf) }));
  const around = (from, to) => here.map(({ mentions }) => mentions.find((m) => m.first <= from && to < m.stop) ?? null);
  const pieces = [];
  words.forEach((word, i) => {
    if (gaps[i]) pieces.push([gaps[i], i ? around(i - 1, i) : here.map(() => null), null]);
    pieces.push([word, around(i, i), i]);
  });
  const text = el("p", { class: "text", dir: "auto" });
  let run = "", before = null;
  const flush = () => {
    if (!run) return;
    let node = document.createTextNode(run);
    before.forEach((mention, layer) => { if (mention) node = el("span", { class: here[layer].name }, node); });
    text.append(node);
    run = "";
  };
  for (const [part, active, word] of pieces) {
    if (before && active.some((mention, layer) => mention?.number !== before[layer]?.number)) flush();
    run += part;
    before = active;
    const ended = new Map();
    if (word !== null) active.forEach((mention, layer) => {
      if (mention?.stop === word + 1) ended.set(mention.number, [...(ended.get(mention.number) ?? []), here[layer].name]);
    });
    if (ended.size) flush();
    for (const [number, names] of ended) text.append(tag(names, data.types[mentionOf(number).type], pair));
  }
  flush();
  return text;
}

function tag(names, type, pair) {
  const called = { gold: "gold", a: pair ? "A" : "predicted", b: "B" };
  const right = names.length === (pair ? 3 : 2);
  const who = right ? "right" : names.map((name) => called[name]).join(" + ");
  return el("small", { class: right ? "tag right" : `tag on-${names.at(-1)}` }, `${who} ${type}`.trim());
}

function summary(model, letter) {
  return el("p", {}, el("strong", {}, `${letter}${model.name}`), model.baseline ? " (baseline)" : "",
    `: F1 ${model.f1.toFixed(3)}, ${model.tp} right of ${model.predicted} predicted and ${model.gold} gold mentions, `,
    el("a", { href: model.file.split("/").map(encodeURIComponent).join("/") }, "metrics"));
}

function countTable(entries, kinds) {
  const table = document.getElementById("counts");
  const types = data.types.map((_, index) => index);
  const rows = kinds.map((label, kind) => [label, (entry) => entry.kind === kind]);
  rows.push(["all", () => true]);
  const body = rows.map(([label, wanted]) => {
    const found = entries.filter(wanted);
    const cells = types.map((type) => found.filter((entry) => mentionOf(entry.numbers[0]).type === type).length);
    return el("tr", {}, el("th", { scope: "row" }, label), ...[...cells, found.length].map((n) => el("td", {}, String(n))));
  });
  const breakable = (text) => text.split(/(?<=_)/).flatMap((part) => [part, el("wbr")]);
  const heads = ["", ...data.types, "all"].map((text) => el("th", { scope: "col" }, ...breakable(text)));
  table.replaceChildren(el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body));
}

function legend(pair) {
  const mark = (name, text) => el("span", { class: name }, text);
  const parts = [mark("gold", "gold mention"), mark("a", pair ? "A’s mention" : "predicted mention")];
  if (pair) parts.push(mark("b", "B’s mention"));
  const how = ["solid line below", "dashed line above", "dotted line above"];
  document.getElementById("legend").replaceChildren(...parts.map((part, i) => el("span", {}, part, ` ${how[i]}`)));
}

function read() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const index = (name) => data.models.findIndex((model) => model.name === asked.get(name));
  const a = index("a") < 0 ? Math.max(0, data.models.findIndex((model) => !model.baseline)) : index("a");
  return { a, b: index("b"), kind: asked.get("kind") ?? "", type: asked.get("type") ?? "", seen: asked.get("seen") ?? "" };
}

function fill(name, options, value) {
  form.elements[name].replaceChildren(...options.map(([key, text]) => el("option", { value: key }, text)));
  form.elements[name].value = options.some(([key]) => key === value) ? value : options[0][0];
}

function show() {
  const state = read();
  if (!data.models.length) return;
  const [a, b] = [data.models[state.a], data.models[state.b]];
  const kinds = b ? SIDES : data.kinds;
  const names = data.models.map((model) => [model.name, model.baseline ? `${model.name} (baseline)` : model.name]);
  fill("a", names, a.name);
  fill("b", [[GOLD, "gold"], ...names.filter(([name]) => name !== a.name).map(([n, text]) => [n, `B: ${text}`])], b?.name);
  fill("kind", [["", "all kinds"], ...kinds.map((label, index) => [String(index), label])], state.kind);
  fill("type", [["", "all types"], ...data.types.map((label, index) => [String(index), label])], state.type);
  form.elements.seen.value = ["0", "1"].includes(state.seen) ? state.seen : "";
  const entries = b ? differencesOf(a, b) : errorsOf(a);
  const command = `nerprobe errors ${a.name} ${b ? b.name + " " : ""}${data.run}`;
  document.getElementById("about").replaceChildren(summary(a, b ? "A: " : ""), ...(b ? [summary(b, "B: ")] : []),
    el("p", { class: "soft" }, "The same in a terminal: ", el("code", {}, command)));
  countTable(entries, kinds);
  legend(Boolean(b));
  list(entries, kinds, a, b);
}

function list(entries, kinds, a, b) {
  const { kind, type, seen } = form.elements;
  const fits = (entry) => (kind.value === "" || entry.kind === Number(kind.value))
    && (type.value === "" || mentionOf(entry.numbers[0]).type === Number(type.value))
    && (seen.value === "" || mentionOf(entry.numbers[0]).seen === Number(seen.value));
  const wanted = entries.filter(fits);
  const by = (numbers) => Map.groupBy(numbers, (number) => data.mentions[number][0]);
  const layers = [["gold", by(data.gold)], ["a", by(predictedOf(a))], ...(b ? [["b", by(predictedOf(b))]] : [])];
  const items = Map.groupBy(entries, (entry) => data.mentions[entry.numbers[0]][0]);
  const shown = [...new Set(wanted.map((entry) => data.mentions[entry.numbers[0]][0]))].sort((x, y) => x - y);
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  document.getElementById("found").textContent =
    `${count(wanted.length, b ? "difference" : "error")} in ${shown.length} of ${count(data.total, "test item")}`;
  document.getElementById("list").replaceChildren(...shown.map((item) => {
    const marks = layers.map(([name, numbers]) => ({ name, numbers: numbers.get(item) ?? [] }));
    const first = (entry) => data.mentions[entry.numbers[0]][2];
    const lines = items.get(item).sort((x, y) => first(x) - first(y))
      .map((entry) => el("li", fits(entry) ? {} : { class: "off" }, ...describe(entry, kinds)));
    return el("article", {}, el("h3", {}, data.items[item][0]), markedText(item, marks, Boolean(b)), el("ul", {}, ...lines));
  }));
}

form.addEventListener("change", (event) => {
  const chosen = new URLSearchParams(new FormData(form));
  if (event.target.name === "b") chosen.delete("kind"); // errors and differences have other kinds
  if (chosen.get("b") === GOLD || chosen.get("b") === chosen.get("a")) chosen.delete("b");
  for (const [name, value] of [...chosen]) if (!value) chosen.delete(name);
  location.hash = chosen.toString();
});
addEventListener("hashchange", show);
show();
