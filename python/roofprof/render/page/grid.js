// A table that sorts, filters, folds and marks rows, by mouse and by keyboard.

const CHUNK = 300; // rows in the document until more are asked for

class Grid {
  /** `onMark(row)`: the reader chose a row. */
  constructor(section, table, { noun, onMark }) {
    this.table = table;
    this.tree = new Tree(table);
    if (table.first) this.tree.sort = { column: table.byName.get(table.first), descending: true };
    this.noun = noun;
    this.onMark = onMark;
    this.limit = CHUNK;
    this.marked = -1;
    this.active = 0; // the row that the keyboard is at
    this.bars = new Map(); // figures that are drawn as bars too: what is the longest
    this.head = make("thead");
    this.body = make("tbody");
    this.foot = make("tfoot");
    this.more = make("p", { className: "more" });
    this.status = make("span", { className: "aside", attributes: { "aria-live": "polite" } });
    const grid = make("table", {
      className: table.isTree ? "grid tree" : "grid",
      attributes: { role: table.isTree ? "treegrid" : "grid", "aria-labelledby": `${section.parentElement.id}-heading` },
    }, this.head, this.body, this.foot);
    section.append(this.#tools(), make("div", { className: "box tall" }, grid), this.more);
    this.body.addEventListener("click", (event) => this.#click(event));
    this.body.addEventListener("keydown", (event) => this.#key(event));
    this.render();
  }

  // ---- what stands above the table

  #tools() {
    this.search = make("input", {
      type: "search",
      placeholder: `Filter ${this.noun}s`,
      oninput: () => this.#change(() => (this.tree.filter = this.search.value)),
      attributes: { "aria-label": `Filter ${this.noun}s by text`, spellcheck: "false", autocomplete: "off" },
    });
    const tools = make("div", { className: "tools" }, this.search, columnChooser(this.table, () => this.render()));
    if (this.tree.deepest > 0) {
      const flat = make("input", { type: "checkbox" });
      flat.addEventListener("change", () => this.#change(() => (this.tree.flat = flat.checked)));
      tools.append(
        make("div", { className: "segments", attributes: { role: "group", "aria-label": "Fold" } },
          button("Unfold all", () => this.#change(() => this.tree.unfoldTo(Infinity))),
          button("Fold all", () => this.#change(() => this.tree.unfoldTo(1)))),
        make("label", { className: "flat", title: "All levels in one list, by full path" }, flat, " Flat"));
    }
    tools.append(make("span", { className: "grow" }), this.status);
    return tools;
  }

  #change(apply) {
    apply();
    this.limit = CHUNK;
    this.render();
  }

  // ---- what the table shows

  get columns() {
    return this.table.columns.filter((column) => this.table.chosen.has(column.name));
  }

  render() {
    const keepsFocus = this.body.contains(document.activeElement);
    this.shown = this.tree.visible();
    const columns = this.columns;
    this.#longestBars(columns);
    this.#renderHead(columns);
    const rows = this.shown.slice(0, this.limit);
    if (!rows.includes(this.active)) this.active = rows[0] ?? -1;
    this.lines = new Map(rows.map((row) => [row, this.#line(row, columns)]));
    this.body.replaceChildren(...this.lines.values());
    this.foot.replaceChildren(...this.#total(columns));
    this.#renderMore();
    if (keepsFocus) this.lines.get(this.active)?.focus({ preventScroll: true });
  }

  #longestBars(columns) {
    this.bars.clear();
    for (const column of columns.filter(({ name }) => ["time", "wasted_time", "total"].includes(name))) {
      let longest = 0;
      for (let row = 0; row < this.table.count; row++) longest = Math.max(longest, Number(column.raw(row) ?? 0));
      if (longest > 0) this.bars.set(column, longest);
    }
  }

  #renderHead(columns) {
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    const sorted = this.tree.sort;
    const heading = (column) => {
      const isSorted = sorted?.column === column;
      const order = isSorted ? (sorted.descending ? "descending" : "ascending") : "none";
      const sort = button(column.heading, () => this.#sortBy(column), { title: column.meaning });
      sort.dataset.column = column.name;
      return make("th", {
        className: column.textual ? "" : "number", attributes: { scope: "col", "aria-sort": order },
      }, sort);
    };
    const naming = make("th", { attributes: { scope: "col" } },
      button(this.table.naming, () => this.#sortBy(null), { title: "In the order of the report" }));
    this.head.replaceChildren(make("tr", {}, naming, ...columns.map(heading)));
    if (focused) [...this.head.querySelectorAll("button")].find((b) => b.dataset.column === focused)?.focus();
  }

  /** Largest first, then smallest first, then as the report has them. */
  #sortBy(column) {
    const before = this.tree.sort;
    if (column === null) this.tree.sort = null;
    else if (before?.column !== column) this.tree.sort = { column, descending: !column.textual };
    else if (before.descending === !column.textual) this.tree.sort = { column, descending: column.textual };
    else this.tree.sort = null;
    this.#change(() => {});
  }

  #line(row, columns) {
    const { tree, table } = this;
    const foldable = !tree.flat && tree.children[row].length > 0;
    const level = tree.flat ? 0 : tree.levels[row];
    const line = make("tr", {
      tabIndex: row === this.active ? 0 : -1,
      className: tree.matching && !tree.matching.has(row) ? "above" : "",
      attributes: {
        "aria-level": table.isTree ? level + 1 : null,
        "aria-expanded": foldable ? tree.isOpen(row) : null,
        "aria-selected": row === this.marked,
      },
    });
    line.dataset.row = row;
    const name = make("th", { attributes: { scope: "row" }, title: table.names[row] });
    name.style.setProperty("--level", level);
    name.append(make("span", { className: foldable ? "twisty" : "twisty none", attributes: { "aria-hidden": "true" } }),
      table.inferred.has(row) ? "~" : "", nameOf(tree.label(row)),
      table.marked.has(row) ? make("span", { className: "star", title: STAR }, " *") : "",
      table.folds.has(row) ? make("span", {}, " ", nameOf(table.folds.get(row), "fold")) : "");
    line.append(name, ...columns.map((column) => this.#cell(column, row)));
    return line;
  }

  #cell(column, row) {
    const text = column.text(row);
    const cell = make("td", { className: column.textual ? "" : "number", textContent: text });
    if (text === "n/a") cell.classList.add("missing");
    const exact = column.exact(row);
    if (exact) cell.title = exact;
    else if (column.textual && text.length > 24) cell.title = text;
    const longest = this.bars.get(column);
    if (longest) {
      cell.classList.add("bar");
      cell.style.setProperty("--share", `${((100 * Number(column.raw(row) ?? 0)) / longest).toFixed(1)}%`);
    }
    return cell;
  }

  #total(columns) {
    if (!columns.some((column) => column.total)) return [];
    const cell = (column) => {
      const [text, raw] = column.total ?? ["", null];
      const title = column.textual || raw === null ? "" : `${raw} ${column.unit}`;
      return make("td", { className: column.textual ? "" : "number", textContent: text, title });
    };
    return [make("tr", {}, make("th", { attributes: { scope: "row" } }, "total"), ...columns.map(cell))];
  }

  #renderMore() {
    const { shown, tree, table, limit } = this;
    const rest = shown.length - limit;
    const matches = tree.matching ? `${tree.matching.size.toLocaleString("en")} of ` : "";
    const count = table.count - table.folds.size;
    const away = count - shown.filter((row) => !table.folds.has(row)).length;
    const folded = !tree.matching && !tree.flat && away > 0 ? `, ${away.toLocaleString("en")} folded away` : "";
    this.status.textContent = `${matches}${plural(count, this.noun)}${folded}`;
    // What is not in the document is found by the filter, but neither by the browser's search nor on paper.
    this.more.hidden = rest <= 0;
    if (rest <= 0) return this.more.replaceChildren();
    this.more.replaceChildren(`${plural(rest, "more row")} below. `,
      button(`Show ${Math.min(rest, CHUNK).toLocaleString("en")} more`, () => this.#show(limit + CHUNK)), " ",
      button("Show all", () => this.#show(Infinity)));
  }

  #show(limit) {
    this.limit = limit;
    this.render();
  }

  // ---- marking rows

  /** Marks a row; `scroll`: brings it into sight, unfolded. -1: none. */
  mark(row, { scroll = false } = {}) {
    this.lines.get(this.marked)?.setAttribute("aria-selected", "false");
    this.marked = row;
    if (row < 0) return;
    if (scroll) {
      this.tree.reveal(row);
      this.search.value = this.tree.filter;
      this.active = row;
      const place = this.tree.visible().indexOf(row);
      this.limit = Math.max(this.limit, place + 1);
      this.render();
    }
    const line = this.lines.get(row);
    line?.setAttribute("aria-selected", "true");
    if (scroll) line?.scrollIntoView({ block: "center", inline: "nearest" });
  }

  #rowOf(event) {
    const line = event.target.closest("tr");
    return line ? Number(line.dataset.row) : -1;
  }

  #click(event) {
    const row = this.#rowOf(event);
    if (row < 0) return;
    this.#goTo(row);
    if (event.target.classList.contains("twisty") && this.tree.children[row].length && !this.tree.flat) this.#fold(row);
    else this.#choose(row);
  }

  #choose(row) {
    this.mark(row);
    this.onMark(row);
  }

  #fold(row) {
    if (this.tree.matching) return; // a filter decides what is open
    this.tree.toggle(row);
    this.render();
    this.lines.get(row)?.focus({ preventScroll: true });
  }

  /** The keyboard's place. */
  #goTo(row) {
    const line = this.lines.get(row);
    if (!line) return;
    const before = this.lines.get(this.active);
    if (before) before.tabIndex = -1;
    this.active = row;
    line.tabIndex = 0;
    line.focus();
  }

  #key(event) {
    const row = this.#rowOf(event);
    if (row < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const rows = [...this.lines.keys()];
    const place = rows.indexOf(row);
    const { tree } = this;
    const foldable = !tree.flat && tree.children[row].length > 0;
    const moves = {
      ArrowDown: () => this.#goTo(rows[place + 1]),
      ArrowUp: () => this.#goTo(rows[place - 1]),
      PageDown: () => this.#goTo(rows[Math.min(place + 10, rows.length - 1)]),
      PageUp: () => this.#goTo(rows[Math.max(place - 10, 0)]),
      Home: () => this.#goTo(rows[0]),
      End: () => this.#goTo(rows[rows.length - 1]),
      ArrowRight: () => foldable && (tree.isOpen(row) ? this.#goTo(rows[place + 1]) : this.#fold(row)),
      ArrowLeft: () => (foldable && tree.isOpen(row) && !tree.matching ? this.#fold(row)
        : !tree.flat && tree.parent[row] >= 0 && this.#goTo(tree.parent[row])),
      Enter: () => this.#choose(row),
      " ": () => this.#choose(row),
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    moves[event.key]();
  }
}

const STAR = "wastes more in ops of its own than the modules below it do";
