// To look at a column marks it; to look at a barrier marks the kernels that write (darker) and read its value.
for (const section of document.querySelectorAll("section")) {
  const columns = {};
  for (const cell of section.querySelectorAll("[data-kernel]")) (columns[cell.dataset.kernel] ??= []).push(cell);
  const mark = (names, kind, on) =>
    names.forEach((name) => (columns[name] ?? []).forEach((cell) => cell.classList.toggle(kind, on)));
  for (const [event, on] of [["mouseover", true], ["mouseout", false]])
    section.addEventListener(event, ({ target }) => {
      const cell = target.closest("[data-kernel]"), told = target.closest("[data-writers]");
      if (cell) mark([cell.dataset.kernel], "seen", on);
      if (told) mark(told.dataset.writers.split(" "), "writes", on);
      if (told) mark(told.dataset.readers.split(" "), "reads", on);
    });
}
