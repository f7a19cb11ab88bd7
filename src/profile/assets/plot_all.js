// Draws every plot of the page, and again when the theme or the width changes.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('stoker-charts').textContent);
  const rowHeight = 30;
  const frameHeight = 90;
  const plots = [];

  function draw(canvas) {
    const chart = data[Number(canvas.dataset.chart)];
    const old = window.Chart.getChart(canvas);
    if (old) old.destroy();
    try {
      const {config, rows} = stokerPlots.kinds[chart.kind](chart);
      if (rows > 0) canvas.parentElement.style.height = `${frameHeight + rows * rowHeight}px`;
      else canvas.parentElement.style.height = '';
      plots.push(new window.Chart(canvas, config));
    } catch (error) {
      console.error(error);
      const text = document.createElement('p');
      text.className = 'failed';
      text.textContent = `This plot could not be drawn (${error.message}). Its figures are below.`;
      canvas.parentElement.replaceChildren(text);
    }
  }

  function drawAll() {
    plots.length = 0;
    for (const canvas of document.querySelectorAll('canvas[data-chart]')) draw(canvas);
  }

  drawAll();
  document.addEventListener('stoker-theme', drawAll);
  stokerPlots.narrow.addEventListener('change', drawAll);
  document.addEventListener(
    'scroll',
    () => {
      document.getElementById('stoker-tooltip').hidden = true;
    },
    {passive: true},
  );
  document.documentElement.dataset.plots = String(plots.length);
})();
