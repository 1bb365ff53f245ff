// The embedded data: columns, rows and their order. Nothing in here knows of elements.

const page = JSON.parse(byId("data").textContent);

/** One figure of all rows: the text that tables show, and the raw value that it is sorted by. */
class Column {
  constructor(described, whole = null, places = null) {
    Object.assign(this, described);
    this.whole = whole; // of a self figure: the column of the figure itself
    this.places = places; // of a self figure: which rows have children, and so values of their own
  }
  #index(row) {
    return this.at[this.places ? this.places.get(row) : row];
  }
  #elsewhere(row) {
    return this.places !== null && !this.places.has(row);
  }
  text(row) {
    return this.#elsewhere(row) ? this.whole.text(row) : this.texts[this.#index(row)];
  }
  raw(row) {
    if (this.#elsewhere(row)) return this.whole.raw(row);
    return this.textual ? this.text(row) : this.raws[this.#index(row)];
  }
  /** The value in full: "1234567 nanoseconds". */
  exact(row) {
    const raw = this.raw(row);
    return this.textual || raw === null ? "" : `${raw} ${this.unit}`;
  }
  /** What a heading's tooltip says. */
  get meaning() {
    return [this.legend || this.heading, `in ${this.unit}`].join(", ");
  }
}

const FIRST = ["time", "total", "percent_of_roof", "wasted_time", "bound"];

/** The rows of one kind, and their columns by name. */
class Table {
  constructor(described) {
    Object.assign(this, described);
    this.isTree = this.paths !== undefined;
    this.names ??= this.paths;
    this.count = this.names.length;
    this.inferred = new Set(described.inferred);
    this.marked = new Set(described.marked);
    this.folds = new Map(described.folds); // lines that stand for equal siblings, which are below them
    const places = new Map((this.inner ?? []).map((row, place) => [row, place]));
    this.byName = new Map();
    for (const column of described.columns) {
      const whole = column.self ? this.byName.get(column.self) : null;
      this.byName.set(column.name, column.self ? new Column(column, whole, places) : new Column(column));
    }
    this.usual = described.usual.filter((name) => this.byName.has(name));
    // What a reader looks for first, then the other usual ones in the order of the printed table, then the rest.
    const order = [...FIRST.filter((name) => this.usual.includes(name)), ...this.usual];
    this.columns = [...new Set([...order.map((name) => this.byName.get(name)), ...this.byName.values()])];
    this.chosen = new Set(this.usual);
    this.rowOf = new Map(this.names.map((name, row) => [name, row]));
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
