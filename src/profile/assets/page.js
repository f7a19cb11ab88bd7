// What a report's page does besides its plots: tables sort, long ones fold, the navigation follows, the theme changes.
(() => {
  'use strict';
  const foldedRows = 15; // as in the style sheet; tables up to a third longer stay whole

  // A row's cell as [kind, value]: numbers come before texts, and missing values last, in either direction.
  function keyOf(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) {
      return [
        0,
        cell.dataset.value === 'inf'
          ? Infinity
          : cell.dataset.value === '-inf'
            ? -Infinity
            : Number(cell.dataset.value),
      ];
    }
    const text = cell.textContent.trim();
    return text === '' || text === '\u2013' ? [2, ''] : [1, text];
  }

  function compare(a, b, sign) {
    if (a[0] !== b[0]) return a[0] - b[0];
    if (a[0] === 0) return sign * (a[1] === b[1] ? 0 : a[1] < b[1] ? -1 : 1);
    return sign * a[1].localeCompare(b[1], 'en', {numeric: true});
  }

  // Numbers begin with the largest, texts with the first; the third click gives the order of the report again.
  function nextOrder(head) {
    const orders = head.classList.contains('number') ? ['descending', 'ascending'] : ['ascending', 'descending'];
    return orders[orders.indexOf(head.getAttribute('aria-sort')) + 1];
  }

  function sortBy(table, heads, rows, column) {
    const order = nextOrder(heads[column]);
    for (const head of heads) head.removeAttribute('aria-sort');
    let sorted = rows;
    if (order) {
      heads[column].setAttribute('aria-sort', order);
      const sign = order === 'ascending' ? 1 : -1;
      sorted = rows
        .map((row) => [keyOf(row, column), row])
        .sort((a, b) => compare(a[0], b[0], sign))
        .map((pair) => pair[1]);
    }
    table.tBodies[0].append(...sorted);
  }

  function makeSortable(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) return;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.title = 'Sort by this column';
      button.append(...head.childNodes);
      button.addEventListener('click', () => sortBy(table, heads, rows, column));
      head.append(button);
    });
  }

  function makeFoldable(table) {
    const count = table.tBodies[0].rows.length;
    if (count <= (foldedRows * 4) / 3) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'more';
    const fold = (folded) => {
      table.classList.toggle('collapsed', folded);
      button.textContent = folded ? `Show all ${count} rows` : 'Show fewer rows';
      button.setAttribute('aria-expanded', String(!folded));
    };
    button.addEventListener('click', () => fold(!table.classList.contains('collapsed')));
    fold(true);
    table.parentElement.after(button);
  }

  function followNavigation() {
    const links = new Map(
      [...document.querySelectorAll('nav a')].map((link) => [link.getAttribute('href').slice(1), link]),
    );
    const seen = new Set();
    const update = (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) seen.add(entry.target.id);
        else seen.delete(entry.target.id);
      }
      const current = [...links.keys()].find((id) => seen.has(id));
      if (current === undefined) return;
      for (const [id, link] of links) {
        if (id === current) link.setAttribute('aria-current', 'true');
        else link.removeAttribute('aria-current');
      }
    };
    const observer = new IntersectionObserver(update, {rootMargin: '-10% 0px -60% 0px'});
    for (const section of document.querySelectorAll('section.part')) observer.observe(section);
  }

  // The plots have the theme's colours in their pixels: they are told when it changes.
  function themeChanged() {
    document.dispatchEvent(new Event('stoker-theme'));
  }

  function offerThemes() {
    const root = document.documentElement;
    const button = document.getElementById('stoker-theme');
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
    const name = () => {
      button.textContent = isDark() ? 'Light' : 'Dark';
    };
    button.setAttribute('aria-label', 'Change between light and dark');
    button.addEventListener('click', () => {
      root.dataset.theme = isDark() ? 'light' : 'dark';
      name();
      themeChanged();
    });
    system.addEventListener('change', () => {
      name();
      themeChanged();
    });
    name();
    button.hidden = false;

    // Paper is white.
    let before;
    window.addEventListener('beforeprint', () => {
      before = root.dataset.theme;
      root.dataset.theme = 'light';
      themeChanged();
    });
    window.addEventListener('afterprint', () => {
      if (before) root.dataset.theme = before;
      else delete root.dataset.theme;
      themeChanged();
    });
  }

  for (const table of document.querySelectorAll('table')) {
    makeSortable(table);
    makeFoldable(table);
  }
  followNavigation();
  offerThemes();
})();
