// Which rows of a table are shown, in which order: folding, filtering, sorting. A flat table is a tree of one level.

const READABLE_ROWS = 60; // unfolded unasked

class Tree {
  constructor(table) {
    this.table = table;
    this.levels = table.levels ?? new Array(table.count).fill(0);
    this.parent = table.parents ?? new Array(table.count).fill(-1);
    this.children = Array.from({ length: table.count }, () => []);
    this.roots = [];
    this.inFold = new Set();
    this.parent.forEach((parent, row) => {
      (parent < 0 ? this.roots : this.children[parent]).push(row);
      if (table.folds.has(parent) || this.inFold.has(parent)) this.inFold.add(row);
    });
    this.unfolded = new Set();
    this.unfoldTo(this.#readableLevel());
    this.filter = "";
    this.flat = false;
    this.sort = null; // {column, descending}; null: as the model has them
    this.matching = null; // with a filter: which rows match it
  }

  #readableLevel() {
    const at = [];
    this.levels.forEach((level, row) => {
      if (!this.inFold.has(row)) at[level] = (at[level] ?? 0) + 1;
    });
    let shown = 0;
    let deepest = 0;
    at.forEach((count, level) => {
      shown += count;
      if (level <= 1 || shown <= READABLE_ROWS) deepest = Math.max(deepest, level);
      else shown = Infinity;
    });
    return deepest;
  }
  get deepest() {
    return this.levels.reduce((most, level) => Math.max(most, level), 0);
  }
  /** Rows above that level are open, deeper ones folded; equal siblings are opened where all is. */
  unfoldTo(level) {
    this.unfolded = new Set();
    for (let row = 0; row < this.table.count; row++) {
      const opens = level === Infinity || !(this.table.folds.has(row) || this.inFold.has(row));
      if (opens && this.levels[row] < level && this.children[row].length) this.unfolded.add(row);
    }
  }
  toggle(row) {
    if (!this.unfolded.delete(row)) this.unfolded.add(row);
  }
  /** The row and those above it, from the top. */
  ancestors(row) {
    const line = [];
    for (let above = this.parent[row]; above >= 0; above = this.parent[above]) line.unshift(above);
    return line;
  }
  /** Nothing folds or filters it away. */
  reveal(row) {
    for (const above of this.ancestors(row)) this.unfolded.add(above);
    if (this.filter && !this.visible().includes(row)) this.filter = "";
  }
  isOpen(row) {
    return this.matching ? this.children[row].some((child) => this.kept.has(child)) : this.unfolded.has(row);
  }

  /** The rows to show, in order. */
  visible() {
    const wanted = this.filter.trim().toLowerCase();
    const all = Array.from({ length: this.table.count }, (_, row) => row);
    this.matching = wanted ? new Set(all.filter((row) => this.table.searched(row).includes(wanted))) : null;
    const compare = this.sort ? comparison(this.sort.column, this.sort.descending) : (a, b) => a - b;
    if (this.flat) {
      return (this.matching ? [...this.matching] : all).filter((row) => !this.table.folds.has(row)).sort(compare);
    }
    this.kept = this.matching ? new Set([...this.matching].flatMap((row) => [row, ...this.ancestors(row)])) : null;
    const shown = [];
    const add = (rows) => {
      for (const row of rows.filter((row) => !this.kept || this.kept.has(row)).sort(compare)) {
        shown.push(row);
        if (this.isOpen(row)) add(this.children[row]);
      }
    };
    add(this.roots);
    return shown;
  }

  /** What a line calls its row: of a path the part that the line above does not have. */
  label(row) {
    if (!this.table.isTree) return this.table.names[row] || "(no name)";
    const path = this.table.names[row];
    if (path === "") return this.table.model;
    let parent = this.parent[row];
    if (this.table.folds.has(parent)) parent = this.parent[parent];
    const above = parent < 0 ? "" : this.table.names[parent];
    return !this.flat && above && path.startsWith(`${above}.`) ? path.slice(above.length + 1) : path;
  }
}
