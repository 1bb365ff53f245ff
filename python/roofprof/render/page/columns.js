// The choice of columns: usual ones, the other figures, and those of a module's own ops.

function columnChooser(table, changed) {
  const boxes = [];
  const choice = (column) => {
    const box = make("input", { type: "checkbox", checked: table.chosen.has(column.name), value: column.name });
    box.addEventListener("change", () => {
      box.checked ? table.chosen.add(column.name) : table.chosen.delete(column.name);
      changed();
    });
    boxes.push(box);
    return make("label", { title: column.meaning }, box, ` ${column.heading}`);
  };
  const group = (label, columns) =>
    columns.length
      ? make("fieldset", {}, make("legend", {}, label), make("div", { className: "choices" }, ...columns.map(choice)))
      : null;
  const usual = new Set(table.usual);
  const isOwn = ({ name }) => name.startsWith("self_") && !usual.has(name);
  const reset = button("Usual columns", () => {
    table.chosen = new Set(table.usual);
    for (const box of boxes) box.checked = table.chosen.has(box.value);
    changed();
  });
  return make("details", { className: "chooser" }, make("summary", {}, "Columns"),
    make("div", { className: "panel" },
      group("Usual", table.columns.filter((column) => usual.has(column.name))),
      group("More", table.columns.filter((column) => !usual.has(column.name) && !isOwn(column))),
      group("Of the module's own ops, without the modules below it", table.columns.filter(isOwn)),
      reset));
}
