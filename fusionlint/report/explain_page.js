// To look at a column marks it and says its kernel; to look at a barrier marks those that write (darker) and read it.
for (const section of document.querySelectorAll("section")) {
  const heads = [...section.querySelectorAll("[data-kernel]")], columns = {};
  for (const head of heads) columns[head.dataset.kernel] = [head];
  for (const row of section.querySelectorAll("tbody tr:not(.file)"))
    heads.forEach((head, i) => columns[head.dataset.kernel].push(row.cells[i + 1]));
  const mark = (names, kind, on) =>
    names.forEach((name) => (columns[name] ?? []).forEach((cell) => cell.classList.toggle(kind, on)));
  const look = ({ target }, on) => {
    const cell = target.closest("[data-kernel], tbody td:not(:last-child)"), told = target.closest("[data-writers]");
    if (cell) {
      const head = heads[cell.cellIndex - 1];
      cell.title = head.title;
      mark([head.dataset.kernel], "seen", on);
    }
    if (told) mark(told.dataset.writers.split(" "), "writes", on);
    if (told) mark(told.dataset.readers.split(" "), "reads", on);
  };
  for (const event of ["mouseover", "focusin"]) section.addEventListener(event, (seen) => look(seen, true));
  for (const event of ["mouseout", "focusout"]) section.addEventListener(event, (seen) => look(seen, false));
}
