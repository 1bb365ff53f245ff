// Ties rows, dots and the names that lead to them together.

let roofline = null;
const NOUNS = { module: "module", op: "operator", kernel: "kernel" };
const grids = new Map();
for (const [by, table] of tables) {
  // Where the time goes comes first; the tree is in the model's order.
  if (!table.isTree) table.first = ["wasted_time", "total", "time", "flops"].find((name) => table.byName.has(name));
  const place = document.querySelector(`[data-table="${by}"]`);
  grids.set(by, new Grid(place, table, { noun: NOUNS[by], onMark: (row) => markDots(by, row) }));
}

// ---- from a dot to its row, and back

function markRow(by, row) {
  grids.get(by).mark(row, { scroll: true });
  markDots(by, row);
}

/** A row's dot, or the dots of all modules below it. */
function markDots(by, row) {
  if (!roofline) return;
  const table = tables.get(by);
  const { tree } = grids.get(by);
  const isBelow = (other) => {
    while (other > row) other = tree.parent[other];
    return other === row;
  };
  const dots = roofline.mark(by, isBelow);
  const name = nameOf(table.names[row] || "(model)");
  const figures = dots.length === 1 ? dots[0].tip.map(([heading, text]) => `${heading} ${text}`).join(", ") : "";
  byId("marked").replaceChildren("Marked: ", name, ". ", figures
    ? `${figures}.` : dots.length ? `${plural(dots.length, "dot")} of what is in it.` : "It has no dot.");
}

const views = new Map(Object.entries(page.rooflines));
if (views.size) roofline = new Roofline(views, markRow);

for (const link of document.querySelectorAll("main button.link[data-row]")) {
  link.onclick = () => markRow("module", Number(link.dataset.row));
}

performance.mark("ready");
document.documentElement.dataset.ready = "yes";
