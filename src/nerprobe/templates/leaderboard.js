"use strict";
(() => {
  const board = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const { models, pairs } = board;
  const byId = (id) => document.getElementById(id);
  const four = (value) => value.toFixed(4).replace(/^(-?)0\./, "$1.");
  const made = (tag, text, parent) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  // Each number shows the command that makes it.
  const explain = (event) => {
    const number = event.target.closest?.("a.n");
    const row = number?.closest("[data-model]");
    if (row) number.title = models[row.dataset.model].command;
  };
  document.addEventListener("pointerover", explain);
  document.addEventListener("focusin", explain);
  const openTarget = () => {
    const target = location.hash.startsWith("#model-") && byId(location.hash.slice(1));
    if (target) target.open = true;
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  // Pairs, by the places of their models.
  const width = models.length;
  const verdictOf = (i) => board.verdicts[pairs.verdict[i]];
  const index = new Map(pairs.first.map((first, i) => [first * width + pairs.second[i], i]));
  const sentence = (text) => text[0].toUpperCase() + text.slice(1);
  const cells = () =>
    pairs.first.map((first, i) => ({
      first: models[first].name,
      second: models[pairs.second[i]].name,
      at: i,
      verdict: verdictOf(i),
      shown: (pairs.verdict[i] === 2 ? "≈ " : "+") + pairs.difference[i].toFixed(3).replace("0.", "."),
      difference: pairs.difference[i],
      low: pairs.low[i],
      high: pairs.high[i],
      p: pairs.p[i],
      p_bh: pairs.p_bh[i],
    }));

  const source = (model, list) => {
    const term = made("dt", model.name, list);
    term.className = "soft";
    const place = made("dd", `F1 ${model.f1}, rank ${model.rank}, tier ${model.tier}; `, list);
    const link = made("a", "metrics", place);
    link.href = model.href;
    place.append(" made by ");
    made("code", model.command, place);
  };
  const showPair = () => {
    const output = byId("pair");
    const [one, two] = [Number(byId("one").value), Number(byId("two").value)];
    output.replaceChildren();
    if (one === two) {
      made("p", "Choose two different models.", output);
      return;
    }
    const forward = index.get(one * width + two);
    const i = forward ?? index.get(two * width + one);
    const [first, second] = [models[pairs.first[i]], models[pairs.second[i]]];
    made("strong", `${first.name} leads ${second.name} by ${four(pairs.difference[i])} F1. ${sentence(verdictOf(i))}.`, output);
    const list = made("dl", "", output);
    const add = (term, text) => {
      made("dt", term, list).className = "soft";
      made("dd", text, list);
    };
    add("Difference", `${four(pairs.difference[i])} [${four(pairs.low[i])}, ${four(pairs.high[i])}], ${100 * board.level} % interval`);
    add("p, not adjusted", `${four(pairs.p[i])}, right if this is the only pair looked at`);
    add("p, Benjamini-Hochberg", `${four(pairs.p_bh[i])}, adjusted over all ${pairs.p.length.toLocaleString("en")} pairs`);
    const leader = pairs.p_leader[i];
    add("p, Holm", leader === null ? "only for pairs with the leader" : `${four(leader)}, adjusted over all comparisons with the leader`);
    source(first, list);
    source(second, list);
    made("dt", "In a terminal", list).className = "soft";
    made("code", `nerprobe compare ${first.name} ${second.name} ${board.run}`, made("dd", "", list));
  };
  if (byId("pair")) {
    byId("one").addEventListener("change", showPair);
    byId("two").addEventListener("change", showPair);
    showPair();
  }

  // Plots. SVG takes its colours from the style sheet; a large matrix is a canvas, which cannot.
  const resolved = (spec) => {
    const style = getComputedStyle(document.documentElement);
    return JSON.parse(JSON.stringify(spec).replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim()));
  };
  const names = models.reduce((most, model) => Math.max(most, model.name.length), 0);
  const draw = async (element) => {
    const name = element.dataset.chart;
    let spec = structuredClone(board.charts[name]);
    let renderer = "svg";
    if (name === "forest") {
      const room = element.clientWidth;
      const labels = Math.min(room < 500 ? 130 : 220, 8 * names);
      spec = JSON.parse(JSON.stringify(spec).replaceAll('"labelLimit":220', `"labelLimit":${labels}`));
      spec.signals.find((signal) => signal.name === "child_width").value = Math.max(120, room - labels - 56);
    }
    if ((name === "parameters" || name === "seconds") && element.clientWidth < 420) {
      spec.marks = spec.marks.filter((mark) => mark.type !== "text"); // no room for names
    }
    if (name === "pairs") {
      spec.data.find((data) => data.name === "pairs").values = cells();
      if (pairs.p.length > 2000) {
        renderer = "canvas";
        spec = resolved(spec);
      }
    }
    const options = { mode: "vega", actions: false, renderer, tooltip: { disableDefaultStyle: true } };
    const shown = await vegaEmbed(element, spec, options);
    if (name === "pairs") {
      shown.view.addEventListener("click", (_, item) => {
        const at = item?.datum?.at;
        if (at === undefined) return;
        byId("one").value = pairs.first[at];
        byId("two").value = pairs.second[at];
        showPair();
        byId("pair").scrollIntoView({ block: "nearest" });
      });
    }
  };
  const charts = [...document.querySelectorAll("[data-chart]")];
  const drawn = (async () => {
    for (const element of charts) await draw(element);
  })();
  let seen = innerWidth;
  let later;
  addEventListener("resize", () => {
    if (innerWidth === seen) return;
    seen = innerWidth;
    clearTimeout(later);
    later = setTimeout(() => charts.filter((e) => e.dataset.chart !== "pairs").forEach(draw), 200);
  });
  dark.addEventListener("change", () => charts.filter((e) => e.dataset.chart === "pairs").forEach(draw));

  // A thick line begins a tier, as long as the order shown is one of tiers.
  const markTiers = (table) => {
    const rows = table.rows({ order: "applied", search: "applied" }).nodes().toArray();
    const tiers = rows.map((row) => Number(row.dataset.tier ?? Infinity));
    const inOrder = tiers.every((tier, i) => i === 0 || tiers[i - 1] <= tier);
    rows.forEach((row, i) => row.classList.toggle("next", inOrder && i > 0 && tiers[i] < Infinity && tiers[i - 1] !== tiers[i]));
  };

  // Tables: the library takes over what the page already shows.
  const tabled = (async () => {
    const key = Object.keys(window).find((name) => name.startsWith("_itables_"));
    const { default: DataTable, set_or_remove_dark_class: shade } = await window[key];
    const shadeNow = () => document.documentElement.classList.toggle("dark", dark.matches);
    dark.addEventListener("change", shadeNow);
    shadeNow();
    const tables = [...document.querySelectorAll("table.data")].map((table) => {
      const paging = table.tBodies[0].rows.length > 60;
      const main = table.id === "board";
      const named = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
      const listed = main ? ["Tier", "Family"].map((name) => named.indexOf(name)) : [];
      const shown = new DataTable(table, {
        titleRow: table.tHead.rows.length - 1,
        columnDefs: listed.map((target) => ({ target, columnControl: [["searchList"]] })),
        order: [],
        autoWidth: false,
        paging,
        pageLength: 50,
        lengthMenu: [25, 50, 100, { label: "All", value: -1 }],
        layout: {
          topStart: paging ? "pageLength" : null,
          topEnd: main || paging ? { search: { text: "Filter", placeholder: "name, tier, family …" } } : null,
          bottomStart: main || paging ? "info" : null,
          bottomEnd: paging ? "paging" : null,
        },
        language: { lengthMenu: "_MENU_ models a page", info: "_START_ to _END_ of _TOTAL_ models", infoEmpty: "no models", infoFiltered: "(of _MAX_)" },
      });
      if (main) shown.on("draw", () => markTiers(shown));
      return shown;
    });
    addEventListener("beforeprint", () => tables.forEach((table) => table.page.len(-1).draw(false)));
    addEventListener("afterprint", () => tables.forEach((table) => table.page.len(50).draw(false)));
  })();
  Promise.all([drawn, tabled]).then(() => document.documentElement.setAttribute("data-ready", ""));
})();
