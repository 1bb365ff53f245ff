// Lays out the page, and ties rows and dots together.

showHeading();
showTotal();
showCoverage();

let roofline = null; // until it is drawn
let waiting = null; // what was marked before

const NOUNS = { module: "module", op: "operator", kernel: "kernel" };
const SECTIONS = { module: "modules", op: "ops", kernel: "kernels" };
const grids = new Map();
for (const [by, table] of tables) {
  const section = byId(SECTIONS[by]);
  section.hidden = false;
  // Where the time goes comes first; the tree is in the model's order.
  if (!table.isTree) table.first = ["wasted_time", "total", "time", "flops"].find((name) => table.byName.has(name));
  grids.set(by, new Grid(section, table, { noun: NOUNS[by], onMark: (row) => markDots(by, row) }));
}

// ---- from a dot to its row, and back

function markRow(by, row) {
  grids.get(by).mark(row, { scroll: true });
  markDots(by, row);
}

/** A row's dot, or the dots of all modules below it. */
function markDots(by, row) {
  if (!roofline) {
    waiting = [by, row];
    return;
  }
  const table = tables.get(by);
  const { tree } = grids.get(by);
  const isBelow = (other) => {
    while (other > row) other = tree.parent[other];
    return other === row;
  };
  const dots = roofline.mark(by, isBelow);
  const name = nameOf(table.isTree ? modulePath(table.names[row]) : table.names[row]);
  const told = dots.length === 1 ? dots[0].told.map(([heading, text]) => `${heading} ${text}`).join(", ") : "";
  byId("marked").replaceChildren("Marked: ", name, ". ", told
    ? `${told}.` : dots.length ? `${plural(dots.length, "dot")} of what is in it.` : "It has no dot.");
}

const views = new Map(Object.entries(page.rooflines));
if (views.size || page.no_roofline.length) byId("roofline").hidden = false;
if (!views.size) {
  for (const id of ["plot-box", "zoom-in", "zoom-out", "zoom-reset"]) byId(id).hidden = true;
  byId("plot-said").append("There is nothing to draw. ", ...page.no_roofline.map((sentence) => `${sentence}. `));
}

showFindings((row) => markRow("module", row));
showHotspots((row) => markRow("module", row));
showMemory();
showParts();
showRoofs();
showEnvironment();
showConventions();

const reached = (state) => {
  performance.mark(state);
  document.documentElement.dataset[state] = "yes";
};
reached("ready");

// The plotting library takes longer than all else, so it runs when the page is on the screen. The policy knows its hash.
function drawRoofline() {
  if (views.size) {
    document.head.append(make("script", { textContent: byId("library").textContent }));
    roofline = new Roofline(views, markRow);
    if (waiting) markDots(...waiting);
  }
  reached("drawn");
}
requestAnimationFrame(() => setTimeout(drawRoofline));
