// What does not move: heading, total, findings, coverage and notes, roofs, environment, conventions.

/** The figures of the total that open a report, as far as it has them. */
const HEADLINE = ["time", "flops", "macs", "bytes", "params", "intensity", "achieved_flops", "bound",
  "percent_of_roof", "wasted_time", "dram_bytes", "utilization"];

function showHeading() {
  for (const [index, [label, text]] of page.heading.entries()) {
    if (index === 0) byId("title").textContent = text;
    else if (label) showBanner(label, text);
    else byId("run").append(make("p", {}, text));
  }
}

/** One banner a label: what follows under the same one is a line in it. */
function showBanner(label, text) {
  const banner = byId("banners").lastElementChild;
  if (banner?.dataset.label === label) banner.append(make("p", {}, text));
  else {
    byId("banners").append(make("div", { className: "banner" }, make("p", {}, make("strong", {}, label), ` ${text}`)));
    byId("banners").lastElementChild.dataset.label = label;
  }
}

function showTotal() {
  const { byName } = tables.get("module");
  for (const column of HEADLINE.map((name) => byName.get(name))) {
    if (!column?.total || column.total[0] === "n/a") continue;
    const [text, raw] = column.total;
    const title = column.textual || raw === null ? "" : `${raw} ${column.unit}`;
    byId("total").append(make("div", { title: column.meaning }, make("dt", {}, column.heading),
      make("dd", { title }, text)));
  }
}

// ---- coverage and notes

const LEVELS = ["attention", "warning", "info"]; // the gravest first

function showCoverage() {
  const { sentences, notes, uncosted, unobserved, uncalled } = page.coverage;
  const section = byId("coverage");
  section.append(...sentences.map((sentence) => make("p", {}, sentence)));
  if (uncosted.length) {
    const rows = uncosted.map(([op, calls, share, modules]) => [nameOf(op), calls, share,
      make("span", {}, ...modules.flatMap((name, index) => [index ? ", " : "", nameOf(name)]))]);
    section.append(make("details", {}, make("summary", {}, plural(uncosted.length, "op without a known cost",
      "ops without a known cost")), plainTable(["op", "calls", "of the op time", "modules"], rows, new Set([1, 2]))));
  }
  if (unobserved.length) {
    const rows = unobserved.map(([name, calls]) => [nameOf(name), calls]);
    section.append(make("details", {}, make("summary", {}, `${plural(unobserved.length, "kind")} of work that ` +
      "bypassed the dispatcher"), plainTable(["what", "calls"], rows, new Set([1]))));
  }
  if (uncalled.length) section.append(listing(`${plural(uncalled.length, "module")} never called`,
    uncalled.map(modulePath)));
  // What a banner says above is not said again.
  const above = new Set(page.heading.filter(([label]) => label).map(([, text]) => text));
  const ranked = notes.filter(({ text, count }) => count > 1 || !above.has(text)).sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  if (ranked.length) section.append(make("ul", { className: "notes" }, ...ranked.map(noteLine)));
}

function noteLine({ level, code, text, count, where }) {
  const more = count > 1 ? ` (${count} times)` : "";
  const places = where.filter((path) => !text.includes(path) || path === "").map(modulePath);
  return make("li", { className: `note ${level}` }, make("span", { className: "level" }, level), " ",
    make("span", {}, text + more), " ", make("code", {}, code),
    places.length ? listing(`in ${plural(places.length, "module")}`, places, 200) : null);
}

// ---- findings, and where most time goes

/** A module's name; it leads to its row and its dot, where it has them. `path` may stand for equal siblings. */
function moduleLink(path, onModule, members = []) {
  const { rowOf } = tables.get("module");
  const row = rowOf.get(path) ?? rowOf.get(members[0]);
  const label = nameOf(modulePath(path));
  return row === undefined ? label : button(label, () => onModule(row), { className: "link" });
}

/** What gains most comes first. `onModule(row)` is called with the module's row when its name is chosen. */
function showFindings(onModule) {
  if (!page.findings.length) return;
  byId("findings").hidden = false;
  if (page.gains) byId("findings").append(make("p", { className: "said" }, `What gains most comes first; ${page.gains}.`));
  byId("findings").append(make("ol", { className: "findings" },
    ...page.findings.map((finding) => findingItem(finding, onModule))));
}

function findingItem(finding, onModule) {
  const { module, modules, text, action, source, gain, shares, basis, confidence, because } = finding;
  const [low, high] = shares.map((share) => Math.min(share, 1) * 100);
  const bar = make("span", { className: "gain", attributes: { "aria-hidden": "true" } });
  bar.style.setProperty("--low", `${low}%`);
  bar.style.setProperty("--high", `${high}%`);
  const evidence = Object.entries(finding.evidence).map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`);
  return make("li", {},
    make("p", {}, moduleLink(module, onModule, modules), " ", make("code", {}, finding.rule)),
    make("p", {}, nameOf(text, "")),
    make("p", { className: "action" }, `${action[0].toUpperCase()}${action.slice(1)}.`),
    make("p", {}, bar, " gain ", make("strong", {}, gain), make("span", { className: "said" },
      `, basis: ${basis}; confidence ${confidence}: ${because}`)),
    finding.try_it ? make("pre", { className: "try", tabIndex: 0 }, finding.try_it) : null,
    source ? make("p", { className: "said" }, "at ", make("code", {}, source)) : null,
    make("details", {}, make("summary", {}, "Evidence"),
      make("p", { className: "said" }, [`bound ${finding.bound}`, ...evidence].join("; ")),
      make("p", { className: "said" }, `Rule: ${finding.reference}`)),
    modules.length > 1 ? listing(`in ${plural(modules.length, "module")}`, modules.map(modulePath), 200) : null);
}

/** `onModule(row)` is called with the module's row when its name is chosen. */
function showHotspots(onModule) {
  if (!page.hotspots) return;
  byId("hotspots").hidden = false;
  const rows = page.hotspots.rows.map(([count, ...rest], index) =>
    [make("span", {}, moduleLink(page.hotspots.modules[index], onModule), count), ...rest]);
  byId("hotspots").append(plainTable(page.hotspots.headings, rows, new Set([2, 4, 5])));
}

/** Ranks, collectives, phases and regions, as far as there are any. */
function showParts() {
  for (const [id, { headings, rows, numeric, legend }] of Object.entries(page.parts)) {
    const cells = rows.map(([first, ...rest]) => [nameOf(first), ...rest]);
    byId(id).hidden = false;
    byId(id).append(plainTable(headings, cells, new Set(numeric)),
      ...legend.map((text) => make("p", { className: "said" }, text)));
  }
}

/** A bar for the most memory during equally many ops, on what was there before. */
function showMemory() {
  if (!page.memory) return;
  const { said, before, moments } = page.memory;
  const [width, height] = [1000, 160];
  const most = before + Math.max(...moments.map(([, bytes]) => bytes));
  const step = width / moments.length;
  const y = (bytes) => height * (1 - bytes / most);
  const plot = byId("memory-plot");
  const bars = moments.map(([op, bytes, text, module, phase, isPeak], index) => draw(plot, "rect", {
    class: isPeak ? "peak" : phase, x: index * step, width: step, y: y(before + bytes), height: y(0) - y(before + bytes),
  }, draw(plot, "title", {}, `${text} around op ${op}: ${modulePath(module)}, ${phase}`)));
  const earlier = draw(plot, "rect", { class: "before", x: 0, width, y: y(before), height: y(0) - y(before) });
  const phases = [...new Set(moments.map(([, , , , phase]) => phase))];
  byId("memory").hidden = false;
  byId("memory-said").append(...said.map((sentence) => make("p", {}, sentence)));
  plot.removeAttribute("hidden");
  plot.append(...bars, earlier);
  byId("memory").append(
    make("p", { className: "said memory-key" }, "Bytes alive over the ops that ran: ",
      ...phases.map((phase) => make("span", { className: phase }, phase)), make("span", { className: "peak" }, "peak"),
      make("span", { className: "before" }, "there before")));
}

// ---- below the tables

function showRoofs() {
  const { device, said, headings, rows, curve } = page.roofs;
  if (!rows.length && !said.length) return;
  byId("roofs").hidden = false;
  if (device) byId("roofs").append(make("p", {}, device));
  if (!rows.length) byId("roofs").append(...said.map((sentence) => make("p", {}, sentence)));
  else byId("roofs").append(plainTable(headings, rows, new Set([1, 2, 3])));
  if (curve.rows.length) {
    byId("roofs").append(make("details", {}, make("summary", {}, "Bandwidth by working set"),
      plainTable(curve.headings, curve.rows, new Set(curve.headings.keys()))));
  }
}

function showEnvironment() {
  byId("environment").append(make("dl", { className: "pairs" }, ...page.environment.flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", {}, value)])));
}

function showConventions() {
  const names = { module: "Modules", op: "Operators", kernel: "Kernels" };
  const said = new Set();
  for (const [by, table] of tables) {
    const fresh = table.legend.filter((sentence) => !said.has(sentence));
    for (const sentence of fresh) said.add(sentence);
    if (fresh.length) {
      byId("conventions").append(make("h3", {}, names[by]),
        make("ul", { className: "legend" }, ...fresh.map((sentence) => make("li", {}, sentence))));
    }
  }
  byId("conventions").append(make("h3", {}, "Cells"), make("ul", { className: "legend" },
    ...["n/a: not known or not defined, never 0", "a cell's tooltip has the figure in full, in its unit",
      "the bars behind times are as long as the figure, against the longest of the column"]
      .map((sentence) => make("li", {}, sentence))));
}
