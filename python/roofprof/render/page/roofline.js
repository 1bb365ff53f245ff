// The roofline as an SVG drawing. Its colours are the page's; legend, list of the worst and zoom buttons stand around it,
// so that the keyboard reaches them.

const BY = { module: "Modules", op: "Operators", kernel: "Kernels" };
const LARGEST_DOT = 17; // pixels from its middle to its edge, of the dot with the most time
const SMALLEST_DOT = 3;
const MARGIN = { left: 64, right: 16, top: 12, bottom: 46 };
const LETTER = 6.2; // pixels, and the height of a line
const LINE = 14;
const SHAPES = { // around 0, as large as a circle of radius 1
  circle: "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0",
  square: "M-.9,-.9h1.8v1.8h-1.8z",
  diamond: "M0,-1.2L1.2,0L0,1.2L-1.2,0z",
  triangle: "M0,-1.1L1.1,.9H-1.1z",
  cross: "M-.35,-1h.7v.65h.65v.7h-.65v.65h-.7v-.65h-.65v-.7h.65z",
};

class Roofline {
  /** `onDot(by, row)`: the dot of that row was clicked. */
  constructor(views, onDot) {
    this.views = views;
    this.onDot = onDot;
    this.plot = byId("plot");
    this.hidden = new Set(); // kinds of op that are switched off
    this.choices = [...views.keys()].map((by) => [by, button(BY[by], () => this.show(by))]);
    if (this.choices.length > 1) byId("roofline-by").append(...this.choices.map(([, choice]) => choice));
    byId("zoom-in").onclick = () => this.#zoom(0.7);
    byId("zoom-out").onclick = () => this.#zoom(1 / 0.7);
    byId("zoom-reset").onclick = () => this.#look(this.#whole());
    this.plot.onpointerdown = (event) => this.#drag(event);
    this.plot.ondblclick = () => this.#look(this.#whole());
    this.plot.onpointermove = (event) => this.#showTip(event);
    this.plot.onpointerleave = () => (byId("tip").hidden = true);
    this.show([...views.keys()][0]);
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  get view() {
    return this.views.get(this.by);
  }

  /** A dot for each module, operator or kernel. */
  show(by) {
    this.by = by;
    this.hidden.clear();
    this.marked = new Set(); // rows whose dots are ringed
    this.#showAround();
    this.#look(this.#whole());
  }

  /** Rings around the dots of the rows that are chosen; those dots. */
  mark(by, isChosen) {
    if (by !== this.by) {
      if (!this.views.has(by)) return [];
      this.show(by);
    }
    const dots = this.view.dots.filter((dot) => isChosen(dot.row) || dot.members.some(isChosen));
    this.marked = new Set(dots.map((dot) => dot.row));
    this.draw();
    return dots;
  }

  // ---- what stands around the drawing

  #showAround() {
    for (const [by, choice] of this.choices) choice.setAttribute("aria-pressed", String(by === this.by));
    byId("kinds").replaceChildren(...this.view.kinds.map((kind) => this.#kindButton(kind)));
    byId("worst").replaceChildren(...this.view.worst.map(({ row, label, text }) =>
      make("li", {}, button(nameOf(label), () => this.onDot(this.by, row), { className: "link" }), ` ${text}`)));
    byId("plot-remarks").textContent = this.view.remarks.join(" ");
  }

  #kindButton(kind) {
    const swatch = draw("svg", { class: "swatch", viewBox: "-1.3 -1.3 2.6 2.6", "aria-hidden": "true" },
      draw("path", { d: SHAPES[kind.shape], fill: kind.colour }));
    const count = this.view.dots.filter((dot) => dot.kind === kind.name).length;
    const control = button(swatch, () => {
      if (!this.hidden.delete(kind.name)) this.hidden.add(kind.name);
      control.setAttribute("aria-pressed", String(!this.hidden.has(kind.name)));
      this.draw();
    }, { className: "kind" });
    control.append(` ${kind.name} (${count})`);
    control.setAttribute("aria-pressed", "true");
    return control;
  }

  #showTip(event) {
    const dot = this.dotOf.get(event.target);
    const tip = byId("tip");
    tip.hidden = !dot;
    if (!dot) return;
    tip.replaceChildren(make("p", {}, nameOf(dot.label)), make("dl", { className: "pairs" },
      ...dot.tip.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)])));
    const frame = byId("plot-box").getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    const left = x + 16 + tip.offsetWidth < frame.width ? x + 16 : Math.max(0, x - 16 - tip.offsetWidth);
    tip.style.setProperty("left", `${left}px`);
    tip.style.setProperty("top", `${Math.max(0, Math.min(y - 12, frame.height - tip.offsetHeight))}px`);
  }

  // ---- the part of the plane that is seen: logarithms of both figures

  #look(range) {
    this.range = range;
    this.draw();
  }

  /** All dots and, of the roofs, the ridges. */
  #whole() {
    const { dots, ridges } = this.view;
    const decades = (values) => {
      const logs = values.filter((value) => value > 0).map(Math.log10);
      return [Math.min(...logs) - 0.35, Math.max(...logs) + 0.35];
    };
    const x = decades([...dots.flatMap((dot) => [dot.intensity, ...dot.levels]), ...ridges.map(([at]) => at)]);
    x[0] -= 0.12 * (x[1] - x[0]); // for the names of the slopes
    return { x, y: decades([...dots.map((dot) => dot.rate), ...ridges.map(([, rate]) => rate)]) };
  }

  #zoom(factor) {
    const nearer = ([low, high]) => [0.5 - factor / 2, 0.5 + factor / 2].map((share) => low + share * (high - low));
    this.#look({ x: nearer(this.range.x), y: nearer(this.range.y) });
  }

  /** A click on a dot, or a box that is drawn around what is to be seen. */
  #drag(event) {
    const frame = this.plot.getBoundingClientRect();
    const at = ({ clientX, clientY }) => [clientX - frame.left, clientY - frame.top];
    const start = at(event);
    const box = draw("rect", { class: "choice" });
    const corners = (end) => [0, 1].map((axis) => [start[axis], end[axis]].sort((a, b) => a - b));
    this.plot.append(box);
    this.plot.setPointerCapture(event.pointerId);
    this.plot.onpointermove = (move) => {
      const [[left, right], [top, bottom]] = corners(at(move));
      filled(box, { x: left, y: top, width: right - left, height: bottom - top }, []);
    };
    this.plot.onpointerup = (end) => {
      this.plot.onpointermove = (move) => this.#showTip(move);
      this.plot.onpointerup = null;
      box.remove();
      const [[left, right], [top, bottom]] = corners(at(end));
      const dot = this.dotOf.get(event.target);
      if (right - left > 8 && bottom - top > 8) {
        this.#look({ x: [left, right].map(this.#x.from), y: [bottom, top].map(this.#y.from) });
      } else if (dot) this.onDot(this.by, dot.row);
    };
  }

  /** From logarithms to pixels, and back. */
  #axis([low, high], start, end) {
    const to = (log) => start + ((log - low) * (end - start)) / (high - low);
    return Object.assign(to, { from: (pixel) => low + ((pixel - start) * (high - low)) / (end - start) });
  }
  #x;
  #y;

  // ---- the drawing

  draw() {
    const [width, height] = [this.plot.clientWidth, this.plot.clientHeight];
    if (width <= MARGIN.left + MARGIN.right || height <= MARGIN.top + MARGIN.bottom) return; // not shown: drawn then
    this.#x = this.#axis(this.range.x, MARGIN.left, width - MARGIN.right);
    this.#y = this.#axis(this.range.y, height - MARGIN.bottom, MARGIN.top);
    this.dotOf = new Map(); // by element
    const area = { x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.left - MARGIN.right,
      height: height - MARGIN.top - MARGIN.bottom };
    this.plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.plot.replaceChildren(
      draw("clipPath", { id: "plot-area" }, draw("rect", area)),
      ...this.#axes(area),
      draw("g", { "clip-path": "url(#plot-area)" }, ...this.#roofs(), ...this.#dots()),
      ...this.#names(area));
  }

  #axes({ x, y, width, height }) {
    const [right, bottom] = [x + width, y + height];
    const plain = (value) => String(Number(value.toPrecision(3)));
    return [
      ...ticks(this.range.x, width / 90).flatMap((at) => [
        draw("path", { class: "axis", d: `M${this.#x(at)},${y}V${bottom}` }),
        draw("text", { class: "xtick", x: this.#x(at), y: bottom + 16, "text-anchor": "middle" }, plain(10 ** at))]),
      ...ticks(this.range.y, height / 40).flatMap((at) => [
        draw("path", { class: "axis", d: `M${x},${this.#y(at)}H${right}` }),
        draw("text", { class: "ytick", x: x - 6, y: this.#y(at) + 4, "text-anchor": "end" }, short(10 ** at))]),
      draw("text", { x: (x + right) / 2, y: bottom + 36, "text-anchor": "middle" }, "FLOPs per byte"),
      draw("text", { transform: `translate(13 ${(y + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "FLOP/s"),
    ];
  }

  /** Slopes up to the highest peak, and peaks from where the steepest slope meets them; ridges. */
  #roofs() {
    const rates = (kind) => this.view.roofs.filter((roof) => roof.kind === kind).map((roof) => Math.log10(roof.rate));
    const [highest, steepest] = [Math.max(...rates("compute"), -99), Math.max(...rates("memory"), -99)];
    const line = (roof) => {
      const rate = Math.log10(roof.rate);
      const slope = roof.kind === "memory";
      const from = slope || steepest === -99 ? this.range.x[0] : Math.max(rate - steepest, this.range.x[0]);
      const to = slope && highest !== -99 ? highest - rate : this.range.x[1];
      const at = (x) => `${this.#x(x)},${this.#y(slope ? x + rate : rate)}`;
      return to > from ? [draw("path", { class: "roof", d: `M${at(from)}L${at(to)}` })] : [];
    };
    const ridge = ([intensity, rate]) => draw("circle", { class: "ridge", r: 2.5, cx: this.#x(Math.log10(intensity)),
      cy: this.#y(Math.log10(rate)) });
    return [...this.view.roofs.flatMap(line), ...this.view.ridges.map(ridge)];
  }

  #dots() {
    const kinds = new Map(this.view.kinds.map((kind) => [kind.name, kind]));
    return this.view.dots.filter((dot) => !this.hidden.has(dot.kind)).flatMap((dot) => {
      const { colour, shape } = kinds.get(dot.kind);
      const [x, y] = this.#place(dot);
      const radius = this.#radius(dot);
      const mark = draw("path", { class: "dot", d: SHAPES[shape], transform: `translate(${x} ${y}) scale(${radius})`,
        fill: dot.measured ? colour : "none", stroke: colour, "data-row": dot.row });
      this.dotOf.set(mark, dot);
      const levels = dot.levels.map((intensity) => this.#x(Math.log10(intensity)));
      return [ // a line at its height, through its place at each memory level
        levels.length > 1 ? draw("path", { class: "levels", stroke: colour,
          d: `M${levels.join(`,${y}L`)},${y}${levels.map((at) => `M${at},${y - 4}v8`).join("")}` }) : null,
        mark,
        this.marked.has(dot.row) ? draw("circle", { class: "ring", cx: x, cy: y, r: radius + 5 }) : null,
      ].filter(Boolean);
    });
  }

  /** Area by time; the first dot has the most. */
  #radius(dot) {
    const longest = this.view.dots[0].time;
    return longest > 0 ? Math.max(SMALLEST_DOT, LARGEST_DOT * Math.sqrt(dot.time / longest)) : SMALLEST_DOT * 2;
  }

  #place(dot) {
    return [this.#x(Math.log10(dot.intensity)), this.#y(Math.log10(dot.rate))];
  }

  /** Peaks have their names at the right edge, slopes where they enter, the dots that waste most numbers. */
  #names({ x: left, y: top, width, height }) {
    const label = ({ x, y, text }, anchor, turned = 0) => draw("text", { class: "label", "text-anchor": anchor,
      transform: `translate(${x} ${y}) rotate(${turned})` }, text);
    const isInside = ({ x, y }) => x >= left && x <= left + width && y >= top && y <= top + height;
    const pick = (kind, place) => this.view.roofs.filter((roof) => roof.kind === kind)
      .map((roof) => ({ ...place(Math.log10(roof.rate)), text: roof.text })).filter(isInside);
    const peaks = pick("compute", (rate) => ({ x: left + width, y: this.#y(rate) - 4 }));
    const [slowest, first] = [this.range.y[0], this.range.x[0]];
    const slopes = pick("memory", (rate) => {
      const x = Math.max(first, slowest - rate);
      return { x: this.#x(x) + 6, y: this.#y(x + rate) - 9 };
    });
    const turned = Math.atan2(this.#y(1) - this.#y(0), this.#x(1) - this.#x(0));
    const shown = new Map(this.view.dots.filter((dot) => !this.hidden.has(dot.kind)).map((dot) => [dot.row, dot]));
    const worst = this.view.worst.flatMap(({ row }, index) => {
      if (!shown.has(row)) return [];
      const [x, y] = this.#place(shown.get(row));
      const radius = this.#radius(shown.get(row));
      return [{ x: radius > LETTER ? x : x + radius + LETTER, y: y + 4, text: String(index + 1) }];
    }).filter(isInside);
    return [...apart(peaks).map((at) => label(at, "end")),
      ...apart(slopes, turned).map((at) => label(at, "start", (turned * 180) / Math.PI)),
      ...apart(worst).map((at) => label(at, "middle"))];
  }
}

/** Labels of which none lies on another: those that would are one, at the first one's place. */
function apart(labels, turned = 0) {
  const kept = [];
  const [cos, sin] = [Math.cos(turned), Math.sin(turned)];
  for (const { x, y, text } of labels) {
    const near = kept.find((other) => Math.abs((y - other.y) * cos - (x - other.x) * sin) < LINE &&
      Math.abs((x - other.x) * cos + (y - other.y) * sin) < LETTER * Math.max(text.length, other.text.length));
    if (near) near.text += `, ${text}`;
    else kept.push({ x, y, text });
  }
  return kept;
}

/** At most so many round numbers of a range, as logarithms: powers of ten, or more where few of them are in it. */
function ticks([low, high], most) {
  for (const digits of [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9], Array.from({ length: 90 }, (_, i) => 1 + i / 10)]) {
    const found = [];
    for (let decade = Math.floor(low); decade <= high; decade++) {
      found.push(...digits.map((digit) => decade + Math.log10(digit)).filter((at) => at >= low && at <= high));
    }
    const step = Math.ceil(found.length / most);
    if (found.length > 2) return found.filter((_, index) => index % step === 0);
  }
  return [];
}

/** A rate as tables print it: 1G, 20M. */
function short(value) {
  const power = Math.max(0, Math.min(6, Math.floor(Math.log10(value) / 3 + 1e-9)));
  return `${Number((value / 1000 ** power).toPrecision(3))}${["", "k", "M", "G", "T", "P", "E"][power]}`;
}
