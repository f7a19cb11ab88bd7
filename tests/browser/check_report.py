#!/usr/bin/env python3
"""check_report.py [--pictures DIR] REPORT.html...: opens reports in a headless Chromium and checks what a reader would see:
no errors, no connection, every section and plot, sorting, tooltips, dark mode, a phone's width, paper.

Exit status 77 where there is no browser. --make PROGRAM: first run `PROGRAM FILE` to make the one report to check."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import browser

SKIPPED = 77
PHONE_WIDTH = 390
# Counts the colours of a plot's own pixels, see-through ones aside.
PLOTS = """[...document.querySelectorAll('canvas')].map(canvas => {
  const {width, height} = canvas;
  const seen = new Set();
  const data = width && height ? canvas.getContext('2d').getImageData(0, 0, width, height).data : [];
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
  return {width: canvas.clientWidth, height: canvas.clientHeight, colours: seen.size};
})"""
# Where the middle of a plot's first visible bar or point is, in the window.
FIRST_ELEMENT = """(canvas => {
  canvas.scrollIntoView({block: 'center', behavior: 'instant'});
  const chart = Chart.getChart(canvas);
  for (let i = 0; i < chart.data.datasets.length; ++i) {
    const at = chart.data.datasets[i].data.findIndex(value => value !== null && value.y !== null);
    if (at < 0) continue;
    const point = chart.getDatasetMeta(i).data[at].getCenterPoint();
    const box = canvas.getBoundingClientRect();
    return {x: box.left + point.x, y: box.top + point.y};
  }
  return null;
})(document.querySelectorAll('canvas')[%d])"""
TOOLTIP = "(box => box.hidden ? '' : box.innerText)(document.getElementById('stoker-tooltip'))"
# The column of numbers to sort by: [table, column] of the first table that has different ones.
NUMBERS = """(() => {
  const tables = [...document.querySelectorAll('.part > .table table')];
  for (const [index, table] of tables.entries()) {
    const column = [...table.tHead.rows[0].cells].findIndex(head => head.classList.contains('number'));
    if (column < 0) continue;
    const values = [...table.tBodies[0].rows].map(row => row.cells[column].dataset.value);
    if (new Set(values).size > 2) return [index, column];
  }
  return null;
})()"""
COLUMN = """[...document.querySelectorAll('.part > .table table')[%d].tBodies[0].rows].map(row => {
  const value = row.cells[%d].dataset.value;
  return value === undefined ? null : value.includes('inf') ? value.replace('inf', 'Infinity') * 1 : Number(value);
})"""
HEAD_BUTTON = """(button => {
  button.scrollIntoView({block: 'center', behavior: 'instant'});
  const box = button.getBoundingClientRect();
  return {x: box.left + box.width / 2, y: box.top + box.height / 2};
})(document.querySelectorAll('.part > .table table')[%d].tHead.rows[0].cells[%d].querySelector('button'))"""


class Check:
    def __init__(self, page, pictures):
        self.page = page
        self.pictures = pictures
        self.failures = []
        self.count = 0

    def expect(self, good, what):
        self.count += 1
        if not good:
            self.failures.append(what)

    def keep(self, name, png):
        if self.pictures:
            (self.pictures / f"{name}.png").write_bytes(png)

    def all(self, path):
        self.page.problems.clear()
        self.page.prefer("light")
        self.page.resize(1280, 900)
        self.page.open(path.resolve().as_uri())
        self.page.settle()
        self.expect(len(self.page.requests()) == 1, f"connections: {self.page.requests()}")
        self.expect(self.page.run("window.hacked") is None, "text of the report ran as a script")
        self.sections()
        if "plots were left out" in self.page.run("document.querySelector('footer').innerText"):
            print(f"{path.name}: the build that made it has no charting library; plots are not checked")
        elif self.plots():
            self.tooltips()
        self.sorting()
        self.appearance(path.stem)
        self.expect(not self.page.problems, "the console has: " + "; ".join(self.page.problems))

    def sections(self):
        run = self.page.run
        self.expect(run("document.querySelectorAll('section.part').length") > 0, "no section")
        self.expect(run("[...document.querySelectorAll('section.part')].every(s => s.offsetHeight > 40 && "
                        "s.querySelector('h2').innerText.trim() !== '')"), "a section is not shown")
        self.expect(run("[...document.querySelectorAll('nav a')].map(a => a.hash).join() === "
                        "[...document.querySelectorAll('section.part')].map(s => '#' + s.id).join()"),
                    "the navigation does not lead to every section")
        self.expect(run("(w => !w || w.getBoundingClientRect().top < document.querySelector('section.part')"
                        ".getBoundingClientRect().top)(document.querySelector('.warnings'))"), "warnings are not first")
        self.expect(run("[...document.querySelectorAll('table')].every(t => t.caption) && "
                        "[...document.querySelectorAll('figure')].every(f => f.querySelector('figcaption')) && "
                        "[...document.querySelectorAll('canvas')].every(c => c.getAttribute('aria-label'))"),
                    "a table or plot has no caption")

    def plots(self):
        """Whether there are plots, drawn or not, that can be asked about."""
        plots = self.page.run(PLOTS)
        figures = self.page.run("document.querySelectorAll('figure.chart').length")
        self.expect(len(plots) == figures, f"{len(plots)} plots for {figures} figures")
        for i, plot in enumerate(plots):
            self.expect(plot["width"] > 300 and plot["height"] > 100, f"plot {i} is {plot['width']} x {plot['height']}")
            self.expect(plot["colours"] >= 4, f"plot {i} is blank: {plot['colours']} colours")
        ran = self.page.run("typeof Chart === 'function' && [...document.querySelectorAll('canvas')].every(Chart.getChart)")
        self.expect(ran or not plots, "the plots' script did not run")
        return ran

    def tooltips(self):
        for i in range(self.page.run("document.querySelectorAll('canvas').length")):
            place = self.page.run(FIRST_ELEMENT % i)
            if place is None:
                continue
            self.page.settle()
            self.page.move_mouse(place["x"], place["y"])
            text = self.page.run(TOOLTIP)
            self.expect(any(c.isdigit() for c in text), f"plot {i}: hovering shows {text!r}")
            unit = self.page.run(f"JSON.parse(document.getElementById('stoker-charts').textContent)[{i}].y.unit")
            self.expect(("\u00d7" if unit == "x" else unit) in text, f"plot {i}: the tooltip {text!r} has no unit {unit!r}")
            if i == 0:
                self.keep("tooltip", self.page.picture(whole=False))
        self.page.move_mouse(1, 1)
        self.expect(self.page.run(TOOLTIP) == "", "the tooltip stays when the mouse has gone")

    def sorting(self):
        column = self.page.run(NUMBERS)
        if column is None:
            return
        original = self.page.run(COLUMN % tuple(column))
        numbers = sorted(value for value in original if value is not None)
        missing = [value for value in original if value is None]
        for expected in (numbers[::-1] + missing, numbers + missing, original):
            place = self.page.run(HEAD_BUTTON % tuple(column))
            self.page.settle()
            self.page.click(place["x"], place["y"])
            got = self.page.run(COLUMN % tuple(column))
            self.expect(got == expected, f"after a click the column is {got}, not {expected}")

    def appearance(self, name):
        self.page.run("window.scrollTo(0, 0)")
        background = {}
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            self.keep(f"{name}-{scheme}", self.page.picture())
            background[scheme] = self.not_blank(f"{name}, {scheme}")
        self.expect(sum(background["light"][:3]) > 600 and sum(background["dark"][:3]) < 200,
                    f"light and dark have the backgrounds {background}")
        self.page.prefer("light")
        self.page.resize(PHONE_WIDTH, 844, phone=True)
        width = self.page.run("document.scrollingElement.scrollWidth")
        self.expect(width <= PHONE_WIDTH, f"on a phone the page is {width} wide")
        self.keep(f"{name}-phone", self.page.picture())
        self.not_blank(f"{name}, phone")
        self.page.resize(1280, 900)
        paper = self.page.pdf()
        self.expect(paper.startswith(b"%PDF") and len(paper) > 10_000, f"printing gives {len(paper)} bytes")
        if self.pictures:
            (self.pictures / f"{name}.pdf").write_bytes(paper)

    def not_blank(self, what):
        """Checks a small picture of the page; gives its most frequent colour."""
        counts = {}
        for row in browser.pixels(self.page.picture(scale=0.2)):
            for pixel in row:
                counts[pixel] = counts.get(pixel, 0) + 1
        background, most = max(counts.items(), key=lambda item: item[1])
        rest = 1 - most / sum(counts.values())
        self.expect(len(counts) > 100 and rest > 0.05, f"{what}: blank: {len(counts)} colours, {rest:.1%} is not background")
        return background


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", type=pathlib.Path)
    parser.add_argument("--make", metavar="PROGRAM")
    parser.add_argument("--pictures", type=pathlib.Path, help="keep screenshots there")
    options = parser.parse_args()
    path = browser.find()
    if not path:
        print("skipped: there is no Chromium here (Debian: chromium-headless-shell)")
        return SKIPPED
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stoker_report_") as folder:
        reports = options.reports
        if options.make:
            reports = [pathlib.Path(folder) / "sample.html"]
            subprocess.run([options.make, reports[0]], check=True)
        page = browser.Browser(path)
        try:
            check = Check(page, options.pictures)
            for report in reports:
                try:
                    check.all(report)
                except (RuntimeError, TimeoutError) as error:
                    check.failures += [str(error), *page.problems]
        finally:
            page.close()
    for failure in check.failures:
        print("failed:", failure)
    print(f"{len(reports)} report(s), {check.count} checks, {len(check.failures)} failed")
    return 1 if check.failures or not reports else 0


if __name__ == "__main__":
    sys.exit(main())
