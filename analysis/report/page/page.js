// What moves in the report: charts drawn when they come into sight, the slider of the matrices,
// selectors, hiding of methods, the method that is pointed at, sorting of tables. Scores in the
// figures are percent.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: "reset" };
  const hidden = new Set(); // methods by number
  const drawn = new Set(); // names of charts
  const slider = document.getElementById("after");

  // Traces of methods that are not hidden, and of the chosen view where the chart has a selector.
  function tracesOf(name) {
    const select = document.querySelector(`[data-chooses="${name}"]`);
    return figures[name].data.filter((trace) => {
      const { method, view } = trace.meta ?? {};
      const chosen = view === undefined || view === select?.value;
      return chosen && (view?.startsWith("method-") || !hidden.has(method));
    });
  }

  // The matrix after k tasks: later rows are not learned yet.
  function matrixAfter(trace, k) {
    return { ...trace, z: trace.z.map((row, i) => (trace.y[i] <= k ? row : row.map(() => null))) };
  }

  function layoutOf(name, width) {
    const layout = structuredClone(figures[name].layout);
    layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    if (width < 480) {
      layout.font.size = 11;
      layout.margin = { ...layout.margin, l: 44, r: 8 };
    }
    return layout;
  }

  function draw(name) {
    const element = document.getElementById(`chart-${name}`);
    let traces = tracesOf(name);
    if (name.startsWith("matrix-")) {
      const k = Number(slider.value);
      traces = figures[name].data.map((trace) => matrixAfter(trace, k));
    }
    Plotly.react(element, traces, layoutOf(name, element.clientWidth), config);
    if (!drawn.has(name)) listen(element);
    drawn.add(name);
  }

  // Fade all lines but those of one method, or those of all methods but one line; null: none.
  function emphasize(element, isMeant) {
    if (!element.data || element.dataset.chart.startsWith("matrix-")) return;
    const opacity = element.data.map((trace) => (isMeant(trace) ? (trace.fill ? 0.18 : 1) : trace.fill ? 0.03 : 0.15));
    Plotly.restyle(element, { opacity });
  }

  function pointAt(method) {
    for (const name of drawn) {
      emphasize(document.getElementById(`chart-${name}`), (trace) => method === null || trace.meta?.method === method);
    }
  }

  function listen(element) {
    element.on("plotly_hover", ({ points: [{ data }] }) => {
      const { method, view } = data.meta ?? {};
      if (view?.startsWith("method-")) emphasize(element, (trace) => trace.name === data.name);
      else if (method !== undefined) pointAt(method);
    });
    element.on("plotly_unhover", () => pointAt(null));
  }

  function showAfter() {
    const k = Number(slider.value);
    document.getElementById("after-shown").textContent = k;
    for (const element of document.querySelectorAll("[data-average]")) {
      const { averages } = figures[element.dataset.average].data[0].meta;
      element.textContent = `average after ${k}: ${averages[k - 1]}`;
    }
    for (const name of drawn) if (name.startsWith("matrix-")) draw(name);
  }

  function toggle(button) {
    const method = Number(button.dataset.toggles);
    const hide = !hidden.delete(method);
    if (hide) hidden.add(method);
    button.setAttribute("aria-pressed", String(!hide));
    for (const element of document.querySelectorAll(`[data-method="${method}"], [data-card="${method}"]`)) {
      element.hidden = hide;
    }
    for (const name of drawn) if (!name.startsWith("matrix-")) draw(name);
  }

  // Numbers by size, texts by alphabet; what is unknown comes last either way.
  function compare(one, other, direction) {
    if (one === undefined || other === undefined) return (one === undefined) - (other === undefined);
    const numeric = !isNaN(one) && !isNaN(other);
    return direction * (numeric ? one - other : one.localeCompare(other));
  }

  function sort(header) {
    const column = header.cellIndex;
    const direction = header.ariaSort === "ascending" ? -1 : 1;
    const table = header.closest("table");
    for (const other of table.querySelectorAll("th[aria-sort]")) other.ariaSort = "none";
    header.ariaSort = direction === 1 ? "ascending" : "descending";
    const body = table.tBodies[0];
    const key = (row) => row.cells[column].dataset.key;
    body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b), direction)));
  }

  const sight = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        sight.unobserve(entry.target);
        draw(entry.target.dataset.chart);
      }
    },
    { rootMargin: "600px" },
  );
  for (const element of document.querySelectorAll(".chart")) sight.observe(element);
  addEventListener("beforeprint", () => Object.keys(figures).forEach((name) => drawn.has(name) || draw(name)));
  slider.addEventListener("input", showAfter);
  for (const select of document.querySelectorAll("[data-chooses]")) {
    select.addEventListener("change", () => draw(select.dataset.chooses));
  }
  for (const button of document.querySelectorAll("[data-toggles]")) {
    button.addEventListener("click", () => toggle(button));
    for (const event of ["pointerenter", "focus"]) {
      button.addEventListener(event, () => pointAt(Number(button.dataset.toggles)));
    }
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => pointAt(null));
  }
  for (const button of document.querySelectorAll("th[aria-sort] button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }
  showAfter();
})();
