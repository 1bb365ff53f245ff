// The embedded data: columns, rows and their order. Nothing below knows of elements.

const page = JSON.parse(byId("data").textContent);

/** One figure of all rows: the text that tables show, and the raw value that it is sorted by. */
class Column {
  constructor(described) {
    Object.assign(this, described);
  }
  text(row) {
    return this.texts[this.at[row]];
  }
  raw(row) {
    return this.textual ? this.text(row) : this.raws[this.at[row]];
  }
  /** The value in full: "1234567 nanoseconds". */
  exact(row) {
    const raw = this.raw(row);
    return this.textual || raw === null ? "" : `${raw} ${this.unit}`;
  }
}

const FIRST = ["time", "total", "percent_of_roof", "wasted_time", "bound"];

/** The rows of one kind, and their columns by name. */
class Table {
  constructor(described) {
    Object.assign(this, described);
    this.isTree = this.parents !== undefined;
    this.count = this.names.length;
    this.inferred = new Set(described.inferred);
    this.marked = new Set(described.marked);
    this.folds = new Map(described.folds); // lines that stand for equal siblings, which are below them
    this.byName = new Map(described.columns.map((column) => [column.name, new Column(column)]));
    this.usual = described.usual.filter((name) => this.byName.has(name));
    // What a reader looks for first, then the other usual ones in the order of the printed table, then the rest.
    const order = [...FIRST.filter((name) => this.usual.includes(name)), ...this.usual];
    this.columns = [...new Set([...order.map((name) => this.byName.get(name)), ...this.byName.values()])];
    this.chosen = new Set(this.usual);
  }
  /** What a filter looks at. */
  searched(row) {
    return `${this.names[row]} ${this.byName.get("type")?.text(row) ?? ""} ${
      this.byName.get("module")?.text(row) ?? ""}`.toLowerCase();
  }
}

/** Which of two rows is first by a column; what is not known is last, whatever the direction. */
function comparison(column, descending) {
  return (a, b) => {
    const [left, right] = [column.raw(a), column.raw(b)];
    if (left === null || right === null) return (left === null) - (right === null) || a - b;
    const order = column.textual ? (left < right ? -1 : left > right ? 1 : 0) : Number(left) - Number(right);
    return (descending ? -order : order) || a - b;
  };
}

const tables = new Map(
  Object.entries(page.tables).filter(([, described]) => described).map(([by, described]) => [by, new Table(described)]));
