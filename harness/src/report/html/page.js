"use strict";
(() => {
  const table = document.getElementById("all-points");
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const form = document.getElementById("filter");
  const box = document.getElementById("filter-text");
  const primitive = document.getElementById("filter-primitive");
  const status = document.getElementById("filter-status");
  const count = document.getElementById("filter-count");
  const names = headings.map((heading) => heading.textContent);
  const column = (name) => names.indexOf(name);
  const rows = [...body.rows].map((row, at) => ({
    row,
    at,
    cells: [...row.cells].map((cell) => cell.textContent.trim()),
    text: row.textContent.toLowerCase(),
  }));

  // Figures by size, words by alphabet, what is missing last whichever way.
  const compare = (at, down) => (a, b) => {
    const [x, y] = [a.cells[at], b.cells[at]];
    const [p, q] = [parseFloat(x), parseFloat(y)];
    const [figures, other] = [!Number.isNaN(p), !Number.isNaN(q)];
    let order;
    if (headings[at].classList.contains("n")) {
      if (figures !== other) return figures ? -1 : 1;
      order = figures ? p - q : x.localeCompare(y);
    } else {
      order = x.localeCompare(y, undefined, { numeric: true });
    }
    return (down ? -order : order) || a.at - b.at;
  };
  const sort = (at) => {
    const down = headings[at].getAttribute("aria-sort") === "ascending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort(compare(at, down));
    body.append(...rows.map(({ row }) => row));
  };
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sort(at));
    heading.replaceChildren(button);
  });

  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, cells, text } of rows) {
      const keep =
        words.every((word) => text.includes(word)) &&
        (!primitive.value || cells[column("primitive")] === primitive.value.trim()) &&
        (!status.value || row.classList.contains(status.value));
      row.hidden = !keep;
      shown += keep;
    }
    count.textContent = `${shown} of ${rows.length} points`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  for (const control of [box, primitive, status]) control.addEventListener("input", filter);
  filter();

  // The choice of colours outlives the page, where the browser allows it.
  const themes = [...document.querySelectorAll("input[name=theme]")];
  try {
    const kept = document.getElementById(localStorage.getItem("manycore-theme"));
    if (themes.includes(kept)) kept.checked = true;
    themes.forEach((theme) =>
      theme.addEventListener("change", () => localStorage.setItem("manycore-theme", theme.id)),
    );
  } catch {
    // Pages from files may have no storage.
  }

  // The page tries itself when it is opened as report.html#selftest.
  const selftest = () => {
    const shown = (name) =>
      [...body.rows].filter((row) => !row.hidden).map((row) => row.cells[column(name)].textContent.trim());
    const check = (what, holds) => {
      if (!holds) throw new Error(what);
    };
    const button = headings[column("ns/op")].querySelector("button");
    const figures = () => shown("ns/op").map(parseFloat).filter((figure) => !Number.isNaN(figure));
    const ordered = (sign) => figures().every((figure, at, all) => !at || sign * (figure - all[at - 1]) >= 0);
    button.click();
    check("ascending", ordered(1) && headings[column("ns/op")].ariaSort === "ascending");
    button.click();
    check("descending", ordered(-1) && headings[column("ns/op")].ariaSort === "descending");
    const type = (control, value) => {
      control.value = value;
      control.dispatchEvent(new Event("input"));
    };
    const variant = shown("variant")[0];
    type(box, variant);
    check("filter by text", shown("variant").length > 0 && shown("variant").length <= rows.length);
    check("filter keeps", rows.every(({ row, text }) => row.hidden !== text.includes(variant.toLowerCase())));
    type(box, "no such point anywhere");
    check("filter empties", shown("variant").length === 0 && count.textContent.startsWith("0 of "));
    type(box, "");
    type(primitive, primitive.options[1].value);
    check("filter by primitive", new Set(shown("primitive")).size === 1);
    type(primitive, "");
    type(status, "noisy");
    check("filter by status", [...body.rows].every((row) => row.hidden || row.className === "noisy"));
    type(status, "");
    check("all again", shown("variant").length === rows.length);
    headings[0].querySelector("button").focus();
    check("focus", document.activeElement.tagName === "BUTTON");
  };
  if (location.hash === "#selftest") {
    try {
      selftest();
      document.documentElement.dataset.selftest = `passed with ${rows.length} points`;
    } catch (error) {
      document.documentElement.dataset.selftest = `failed: ${error.message}`;
    }
  }
})();
