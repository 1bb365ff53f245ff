// The roofline: plotly.js draws axes, roofs and dots; legend, tooltip and zoom buttons are the page's own, so that the
// keyboard reaches them and names stay text.

/** What stands in plotly.js's labels, which knows some markup, as it is. */
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const BY = { module: "Modules", op: "Operators", kernel: "Kernels" };
const LARGEST_DOT = 34; // pixels across, of the dot with the most time
const SMALLEST_DOT = 6;
const MOST_LABELS = 5; // dots that are named: those that waste most
const LETTER = 6.2; // pixels
const PAPER = { width: 680, height: 380 }; // pixels that fit A4 and letter

class Roofline {
  /** `onDot(by, row)`: the dot of that row was clicked. */
  constructor(views, onDot) {
    this.views = views;
    this.box = byId("plot");
    this.hidden = new Set(); // kinds of op that are switched off
    this.marked = new Set(); // rows whose dots are ringed
    this.by = [...views.keys()][0];
    this.#addButtons();
    this.draw();
    this.box.on("plotly_hover", (event) => this.#showTip(event));
    this.box.on("plotly_unhover", () => (byId("tip").hidden = true));
    this.box.on("plotly_click", ({ points }) => {
      const dot = this.#dotAt(points[0]);
      if (dot) onDot(this.by, dot.row);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("beforeprint", () => this.#print(true)); // paper is light
    addEventListener("afterprint", () => this.#print(false));
  }

  get view() {
    return this.views.get(this.by);
  }

  /** A dot for each module, operator or kernel. */
  show(by) {
    this.by = by;
    this.hidden.clear();
    this.marked.clear();
    this.draw({ fresh: true });
  }

  /** Rings around the dots of the rows that are chosen; those dots. */
  mark(by, isChosen) {
    if (by !== this.by) {
      if (!this.views.has(by)) return [];
      this.show(by);
    }
    const dots = this.view.dots.filter((dot) => isChosen(dot.row) || dot.members.some(isChosen));
    this.marked = new Set(dots.map((dot) => dot.row));
    this.draw({ legend: false });
    return dots;
  }

  #print(printing) {
    document.documentElement.classList.toggle("printing", printing);
    this.draw();
  }

  // ---- what stands around the plot

  #addButtons() {
    this.choices = [...this.views.keys()].map((by) => [by, button(BY[by], () => this.show(by))]);
    if (this.choices.length > 1) byId("roofline-by").append(...this.choices.map(([, choice]) => choice));
    byId("zoom-in").onclick = () => this.#zoom(0.7);
    byId("zoom-out").onclick = () => this.#zoom(1 / 0.7);
    byId("zoom-reset").onclick = () => Plotly.relayout(this.box, this.#whole());
  }

  #zoom(factor) {
    const change = {};
    for (const axis of ["xaxis", "yaxis"]) {
      const [low, high] = this.box._fullLayout[axis].range.map(Number);
      const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
      change[`${axis}.range`] = [middle - half, middle + half];
    }
    Plotly.relayout(this.box, change);
  }

  #showLegend() {
    byId("kinds").replaceChildren(...this.view.kinds.map((kind) => this.#kindButton(kind)));
    for (const [by, choice] of this.choices) choice.setAttribute("aria-pressed", String(by === this.by));
    byId("plot-said").replaceChildren(...this.view.said.map((sentence) => make("span", {}, `${sentence}. `)));
  }

  #kindButton(kind) {
    const swatch = make("span", { className: `swatch ${kind.shape}`, attributes: { "aria-hidden": "true" } });
    swatch.style.setProperty("--kind", kind.colour);
    const count = this.view.dots.filter((dot) => dot.kind === kind.name).length;
    const control = button(swatch, () => {
      if (!this.hidden.delete(kind.name)) this.hidden.add(kind.name);
      control.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
      this.draw({ legend: false });
    }, { className: "kind" });
    control.append(` ${kind.name} (${count})`);
    control.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
    return control;
  }

  #dotAt(point) {
    const row = point?.data.rows?.[point.pointNumber];
    return row === undefined ? undefined : this.view.dots.find((dot) => dot.row === row);
  }

  #showTip({ points, event }) {
    const dot = this.#dotAt(points[0]);
    if (!dot) return;
    const tip = byId("tip");
    tip.replaceChildren(make("p", {}, nameOf(dot.label)),
      make("dl", { className: "pairs" }, ...dot.told.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
    tip.hidden = false;
    const frame = byId("plot-box").getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const left = x + 16 + tip.offsetWidth < frame.width ? x + 16 : Math.max(0, x - 16 - tip.offsetWidth);
    tip.style.setProperty("left", `${left}px`);
    tip.style.setProperty("top", `${Math.max(0, Math.min(y - 12, frame.height - tip.offsetHeight))}px`);
  }

  // ---- the plot itself

  draw({ fresh = false, legend = true } = {}) {
    if (legend) this.#showLegend();
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(
      ["text", "soft", "line", "ground", "accent"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const traces = [...this.#roofs(), ...this.view.kinds.flatMap((kind) => this.#kind(kind)), this.#ring()];
    const onPaper = document.documentElement.classList.contains("printing");
    this.narrow = !onPaper && this.box.clientWidth < 600;
    const layout = { ...this.#layout(), ...(onPaper ? PAPER : { autosize: true }) };
    if (this.drawnBy === this.by && !fresh && this.box._fullLayout) {
      for (const axis of ["xaxis", "yaxis"]) layout[axis].range = this.box._fullLayout[axis].range.slice();
    }
    Plotly.react(this.box, traces, layout, { displayModeBar: false, responsive: true, doubleClick: false });
    this.drawnBy = this.by;
    if (fresh || !this.listens) {
      this.listens ??= (this.box.on("plotly_doubleclick", () => Plotly.relayout(this.box, this.#whole())), true);
    }
  }

  /** The part of the plane that has all dots and, of the roofs, the ridges. */
  #whole() {
    const xs = this.view.dots.flatMap((dot) => [dot.intensity, ...dot.levels.map(([, at]) => at)]);
    const ys = this.view.dots.map((dot) => dot.rate);
    for (const ridge of this.view.ridges) {
      xs.push(ridge.intensity);
      ys.push(ridge.rate);
    }
    const decades = (values) => {
      const logs = values.filter((value) => value > 0).map(Math.log10);
      return logs.length ? [Math.min(...logs) - 0.35, Math.max(...logs) + 0.35] : [-1, 3];
    };
    const [left, right] = decades(xs);
    const share = (this.narrow ? 0.35 : 0.12) * (right - left); // for the names of the slopes
    return { "xaxis.range": [left - share, right], "yaxis.range": decades(ys) };
  }

  #roofs() {
    const compute = this.view.roofs.filter((roof) => roof.kind === "compute").map((roof) => roof.rate);
    const memory = this.view.roofs.filter((roof) => roof.kind === "memory").map((roof) => roof.rate);
    const [highest, widest] = [Math.max(...compute), Math.max(...memory)];
    const far = 1e12; // beyond every picture
    return this.view.roofs.map((roof) => {
      // A slope up to the highest peak; a peak from where the widest slope meets it.
      const from = roof.kind === "memory" ? 1 / far : memory.length ? roof.rate / widest : 1 / far;
      const to = roof.kind === "memory" && compute.length ? highest / roof.rate : far;
      const at = (x) => (roof.kind === "memory" ? roof.rate * x : roof.rate);
      return { type: "scatter", mode: "lines", x: [from, to], y: [at(from), at(to)], hoverinfo: "skip",
        line: { color: this.colours.soft, width: 1.5, dash: roof.kind === "memory" ? "solid" : "longdash" } };
    });
  }

  #kind(kind) {
    const dots = this.view.dots.filter((dot) => dot.kind === kind.name);
    const visible = !this.hidden.has(kind.name);
    const joined = dots.filter((dot) => dot.levels.length > 1);
    // One line a dot, at its height, through its place at each memory level.
    const levels = { type: "scatter", mode: "lines+markers", visible, hoverinfo: "skip",
      x: joined.flatMap((dot) => [...dot.levels.map(([, intensity]) => intensity), null]),
      y: joined.flatMap((dot) => [...dot.levels.map(() => dot.rate), null]),
      line: { color: kind.colour, width: 1 }, marker: { symbol: "line-ns-open", size: 8, color: kind.colour } };
    const marks = { type: "scatter", mode: "markers", visible, name: plain(kind.name), hoverinfo: "none",
      x: dots.map((dot) => dot.intensity), y: dots.map((dot) => dot.rate), rows: dots.map((dot) => dot.row),
      marker: { color: kind.colour, size: dots.map((dot) => this.#size(dot)), opacity: 0.85,
        symbol: dots.map((dot) => (dot.measured ? kind.shape : `${kind.shape}-open`)),
        line: { width: 1.8, color: dots.map((dot) => (dot.measured ? this.colours.ground : kind.colour)) } } };
    return joined.length ? [levels, marks] : [marks];
  }

  /** Area by time. */
  #size(dot) {
    const longest = this.view.longest;
    return longest > 0 ? Math.max(SMALLEST_DOT, LARGEST_DOT * Math.sqrt((dot.time ?? 0) / longest)) : SMALLEST_DOT * 2;
  }

  #ring() {
    const dots = this.view.dots.filter((dot) => this.marked.has(dot.row) && !this.hidden.has(dot.kind));
    return { type: "scatter", mode: "markers", hoverinfo: "skip",
      x: dots.map((dot) => dot.intensity), y: dots.map((dot) => dot.rate),
      marker: { symbol: "circle-open", color: this.colours.accent, size: dots.map((dot) => this.#size(dot) + 9),
        line: { width: 3, color: this.colours.accent } } };
  }

  #layout() {
    const whole = this.#whole();
    const axis = (title, range) => ({ type: "log", title: { text: title, standoff: 8 }, range, exponentformat: "SI",
      showexponent: "all", color: this.colours.text, gridcolor: this.colours.line, linecolor: this.colours.soft,
      zeroline: false, automargin: true, nticks: this.narrow ? 4 : 7,
      minor: { showgrid: false, ticks: "outside", ticklen: 3, tickcolor: this.colours.line } });
    return { xaxis: axis("FLOPs per byte", whole["xaxis.range"]), yaxis: axis("FLOP/s", whole["yaxis.range"]),
      annotations: this.#labels(whole), showlegend: false, hovermode: "closest", dragmode: "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 16, t: 12, b: 48 },
      font: { family: "system-ui, sans-serif", size: 12, color: this.colours.text }, hoverdistance: 12 };
  }

  /** The roofs' names: peaks at the right edge, slopes where they leave the picture, ridges above their place, as dots
   * that come near the roof lie below it. */
  #labels(whole) {
    const [left, right] = whole["xaxis.range"];
    const bottom = whole["yaxis.range"][0];
    const style = (text) => ({ text: plain(text), showarrow: false, font: { size: 11, color: this.colours.text },
      bgcolor: this.colours.ground, borderpad: 1 });
    const labels = this.view.roofs.map((roof) => {
      const rate = Math.log10(roof.rate);
      if (roof.kind === "compute") {
        return { ...style(roof.text), x: right, y: rate, xanchor: "right", yanchor: "bottom" };
      }
      const x = Math.max(left, bottom - rate) + 0.06;
      return { ...style(roof.text), x, y: x + rate, xanchor: "left", yanchor: "middle" };
    });
    const ridges = this.narrow ? [] : this.view.ridges.map((ridge) => ({
      ...style(`ridge ${ridge.text}`), x: Math.log10(ridge.intensity), y: Math.log10(ridge.rate), xanchor: "right",
      yanchor: "bottom", xshift: -12, font: { size: 10, color: this.colours.soft } }));
    return apart([...labels, ...ridges, ...this.#worst()], this.#pixels(whole));
  }

  /** The names of the dots that waste most, each on the side where there is room. */
  #worst() {
    const wasting = this.view.dots.filter((dot) => dot.wasted > 0 && !this.hidden.has(dot.kind));
    wasting.sort((a, b) => b.wasted - a.wasted);
    return wasting.slice(0, this.narrow ? 2 : MOST_LABELS).map((dot) => ({
      text: plain(short(dot.label)), showarrow: false, font: { size: 11, color: this.colours.text },
      x: Math.log10(dot.intensity), y: Math.log10(dot.rate), xanchor: "left", yanchor: "middle",
      gap: this.#size(dot) / 2 + 3 }));
  }

  /** From a place in the plane, in decades, to one in the picture, in pixels. */
  #pixels(whole) {
    const onPaper = document.documentElement.classList.contains("printing");
    const [left, right] = whole["xaxis.range"];
    const [bottom, top] = whole["yaxis.range"];
    const width = (onPaper ? PAPER.width : this.box.clientWidth) - 72;
    const height = (onPaper ? PAPER.height : this.box.clientHeight) - 60;
    return ({ x, y }) => [(width * (x - left)) / (right - left), (height * (top - y)) / (top - bottom)];
  }
}

/** The end of a long path, which tells modules apart. */
const short = (name) => (name.length > 28 ? `…${name.slice(-27)}` : name);

/** Labels that do not overlap: one with a `gap` goes to that side of its dot where it has room, or is left out; another
 * that has none is left out. Earlier ones go first. */
function apart(labels, pixels) {
  const taken = [];
  const frame = ({ text, x, y, xanchor, yanchor, xshift = 0, yshift = 0 }) => {
    const [width, height] = [text.length * LETTER + 4, 15];
    const [px, py] = pixels({ x, y });
    const left = px + xshift - { left: 0, right: width, center: width / 2 }[xanchor];
    const top = py - yshift - { top: 0, bottom: height, middle: height / 2 }[yanchor];
    return { left, top, right: left + width, bottom: top + height };
  };
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return labels.flatMap(({ gap, ...label }) => {
    const sides = gap === undefined ? [label] : [
      { ...label, xshift: gap },
      { ...label, xanchor: "right", xshift: -gap },
      { ...label, xanchor: "center", yanchor: "bottom", yshift: gap },
      { ...label, xanchor: "center", yanchor: "top", yshift: -gap },
    ];
    const side = sides.find((one) => !taken.some((other) => meets(frame(one), other)));
    if (side) taken.push(frame(side));
    return side ? [side] : [];
  });
}
