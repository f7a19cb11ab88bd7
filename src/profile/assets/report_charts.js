// Draws a report's plots with Chart.js from the data in the page. Colours are those of the style sheet.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('stoker-charts').textContent);
  const narrow = window.matchMedia('(max-width: 40rem)');
  const seriesColours = 8;
  const pointStyles = ['circle', 'rectRot', 'triangle', 'rect', 'crossRot', 'star', 'rectRounded', 'cross'];

  // ---- colours, numbers and words

  const probe = document.createElement('span');
  probe.hidden = true;
  document.body.append(probe);
  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }
  function faded(rgb, alpha) {
    const parts = rgb.match(/[\d.]+/g).slice(0, 3);
    return `rgba(${parts.join(', ')}, ${alpha})`;
  }
  const seriesColour = (index) => colour(`series-${index % seriesColours + 1}`);

  // Stripes: what was not measured here.
  function striped(rgb) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const pen = tile.getContext('2d');
    pen.fillStyle = faded(rgb, 0.16);
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = rgb;
    pen.lineWidth = 1.6;
    for (const offset of [-8, 0, 8]) {
      pen.moveTo(offset, 8);
      pen.lineTo(offset + 8, 0);
    }
    pen.stroke();
    return pen.createPattern(tile, 'repeat');
  }

  function numberText(value) {
    const size = Math.abs(value);
    if (size >= 1e9 || (size > 0 && size < 1e-4)) return value.toExponential(2).replace('e+', 'e');
    return value.toLocaleString('en-US', {maximumSignificantDigits: size >= 1000 ? 6 : 4, maximumFractionDigits: 4});
  }
  const withUnit = (value, unit) => (unit ? `${numberText(value)}\u00a0${unit}` : numberText(value));
  const shortText = (value) =>
    value.toLocaleString('en-US', {maximumSignificantDigits: Math.abs(value) >= 100 ? Math.ceil(Math.log10(Math.abs(value) + 1)) : 3});
  const signed = (value, text) => (value > 0 ? `+${text}` : text.replace('-', '\u2212'));
  const percent = (value) => signed(value, `${Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(1)}\u00a0%`);
  const axisTitle = (axis) => (axis.unit ? (axis.title ? `${axis.title} (${axis.unit})` : axis.unit) : axis.title);

  function wrapped(text, width) {
    const lines = [];
    for (const word of text.split(/\s+/)) {
      const last = lines.length - 1;
      if (last >= 0 && lines[last].length + 1 + word.length <= width) lines[last] += ` ${word}`;
      else lines.push(word);
    }
    return lines;
  }

  // A value that an axis can show, or null.
  function shown(value, axis) {
    return typeof value === 'number' && (!axis.logarithmic || value > 0) ? value : null;
  }

  // ---- the tooltip: an element of the page, so that it may be larger than its plot and be read aloud

  function tooltipRow(line) {
    const row = document.createElement('div');
    row.className = 'row';
    if (line.colour) {
      const swatch = document.createElement('span');
      swatch.className = 'swatch';
      swatch.style.background = line.dashed ? 'transparent' : line.colour;
      swatch.style.borderColor = line.colour;
      row.append(swatch);
    }
    const name = document.createElement('span');
    name.textContent = line.name;
    const amount = document.createElement('span');
    amount.className = 'amount';
    amount.textContent = line.amount;
    row.append(name, amount);
    return row;
  }

  function showTooltip(context, describe) {
    const box = document.getElementById('stoker-tooltip');
    const model = context.tooltip;
    if (model.opacity === 0 || !model.dataPoints || model.dataPoints.length === 0) {
      box.hidden = true;
      return;
    }
    const {title, lines} = describe(model.dataPoints);
    const head = document.createElement('div');
    head.className = 'title';
    head.textContent = title;
    box.replaceChildren(...(title ? [head] : []), ...lines.map(tooltipRow));
    box.hidden = false;
    const frame = context.chart.canvas.getBoundingClientRect();
    const {offsetWidth: width, offsetHeight: height} = box;
    let left = frame.left + model.caretX + 14;
    if (left + width > document.documentElement.clientWidth - 8) left = frame.left + model.caretX - width - 14;
    const top = Math.max(4, frame.top + model.caretY - height / 2);
    box.style.transform = `translate(${Math.max(4, left) + window.scrollX}px, ${top + window.scrollY}px)`;
  }

  // ---- axes

  const isPowerOfTen = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;

  function logTicks(scale, ticksAt) {
    if (ticksAt) {
      scale.ticks = ticksAt.filter((value) => value >= scale.min && value <= scale.max).map((value) => ({value}));
      return;
    }
    const decades = Math.log10(scale.max / scale.min);
    const first = (value) => Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
    const kept = decades > 2.2 ? [1] : decades > 1 ? [1, 3] : [1, 2, 3, 5, 7];
    scale.ticks = scale.ticks.filter((tick) => isPowerOfTen(tick.value) || kept.includes(first(tick.value)));
  }

  function axisOptions(axis, {grid, ticksAt} = {}) {
    const muted = colour('muted');
    return {
      type: axis.logarithmic ? 'logarithmic' : 'linear',
      beginAtZero: !axis.logarithmic,
      grace: axis.logarithmic ? 0 : '4%',
      title: {display: axisTitle(axis) !== '', text: axisTitle(axis), color: muted, font: {size: 12}},
      grid: {display: grid !== false, color: colour('grid'), borderColor: colour('rule'), drawTicks: false},
      border: {color: colour('rule')},
      ticks: {color: muted, padding: 6, maxTicksLimit: narrow.matches ? 6 : 9, callback: (value) => numberText(value)},
      afterBuildTicks: axis.logarithmic ? (scale) => logTicks(scale, ticksAt) : undefined,
    };
  }

  function categoryAxis(chart, horizontal) {
    const width = horizontal ? (narrow.matches ? 16 : 30) : Math.max(9, Math.floor((narrow.matches ? 40 : 120) / chart.categories.length));
    return {
      type: 'category',
      labels: chart.categories.map((text) => wrapped(text, width)),
      title: {display: chart.x.title !== '', text: axisTitle(chart.x), color: colour('muted'), font: {size: 12}},
      grid: {display: false, borderColor: colour('rule')},
      border: {color: colour('rule')},
      ticks: {color: colour('ink'), autoSkip: chart.categories.length > 30, maxRotation: 50, font: {size: narrow.matches ? 11 : 12}},
    };
  }

  function legendOptions(show) {
    return {
      display: show,
      position: 'top',
      align: 'start',
      labels: {color: colour('ink'), usePointStyle: true, boxWidth: 10, boxHeight: 8, padding: 14},
    };
  }

  function commonOptions(show, describe) {
    return {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      locale: 'en-US',
      font: {family: getComputedStyle(document.body).fontFamily, size: 12},
      plugins: {
        legend: legendOptions(show),
        tooltip: {enabled: false, external: (context) => showTooltip(context, describe)},
      },
    };
  }

  // ---- bars

  function barText(context, text, x, y, fill, align, baseline, bold) {
    const family = getComputedStyle(document.body).fontFamily;
    context.font = `${bold ? 600 : 400} 11px ${family}`;
    context.fillStyle = fill;
    context.textAlign = align;
    context.textBaseline = baseline;
    context.fillText(text, x, y);
  }

  // The values at the bars' ends, where there is room: a printed page cannot be hovered.
  function barLabels(horizontal, stacked, unitAxis) {
    return {
      id: 'barLabels',
      afterDatasetsDraw(plot) {
        const pen = plot.ctx;
        const ink = colour('ink');
        const surface = colour('surface');
        plot.data.datasets.forEach((dataset, index) => {
          if (!plot.isDatasetVisible(index)) return;
          plot.getDatasetMeta(index).data.forEach((bar, i) => {
            const value = shown(dataset.data[i], unitAxis);
            if (value === null) return;
            const text = shortText(value);
            const {x, y, base, width, height} = bar.getProps(['x', 'y', 'base', 'width', 'height'], true);
            pen.font = '11px sans-serif';
            const needed = pen.measureText(text).width + 6;
            const length = Math.abs(horizontal ? x - base : y - base);
            if (stacked) {
              const roomy = horizontal ? length > needed && height > 13 : length > 14 && width > needed;
              const fill = dataset.striped ? ink : surface;
              if (roomy) barText(pen, text, horizontal ? (x + base) / 2 : x, horizontal ? y : (y + base) / 2, fill, 'center', 'middle');
            } else if (horizontal && height > 9) {
              barText(pen, text, x + 5, y, ink, 'left', 'middle');
            } else if (!horizontal && width > needed - 4) {
              barText(pen, text, x, y - 3, ink, 'center', 'bottom');
            }
          });
        });
      },
    };
  }

  function barDatasets(chart) {
    return chart.series.map((series, index) => {
      const rgb = seriesColour(index);
      return {
        label: series.name,
        data: chart.categories.map((_, i) => (series.points[i] ? shown(series.points[i].y, chart.y) : null)),
        backgroundColor: series.dashed ? striped(rgb) : rgb,
        borderColor: rgb,
        borderWidth: series.dashed ? 1.2 : 0,
        borderRadius: 2,
        maxBarThickness: 56,
        categoryPercentage: 0.76,
        barPercentage: 0.92,
        striped: series.dashed,
        pointStyle: 'rectRounded',
      };
    });
  }

  function describeBars(chart, stacked) {
    return (items) => {
      const index = items[0].dataIndex;
      const lines = items.filter((item) => item.raw !== null).map((item) => {
        const series = chart.series[item.datasetIndex];
        const label = series.points[index].label;
        const name = series.name || axisTitle(chart.y) || 'Value';
        return {name: label ? `${name}: ${label}` : name, amount: withUnit(item.raw, chart.y.unit),
          colour: item.dataset.borderColor, dashed: series.dashed};
      });
      if (stacked && lines.length > 1) {
        lines.push({name: 'Together', amount: withUnit(items.reduce((sum, item) => sum + (item.raw || 0), 0), chart.y.unit)});
      }
      return {title: chart.categories[index], lines};
    };
  }

  function barConfig(chart) {
    const stacked = chart.kind === 'stacked_bars';
    const horizontal = chart.kind === 'horizontal_bars' || (narrow.matches && chart.categories.length > 4);
    const options = commonOptions(chart.series.length > 1, describeBars(chart, stacked));
    const category = horizontal ? 'y' : 'x';
    options.indexAxis = category;
    options.interaction = {mode: 'index', intersect: false, axis: category};
    options.layout = {padding: {right: horizontal && !stacked ? 40 : 4, top: horizontal ? 0 : 12}};
    options.scales = {
      [category]: {...categoryAxis(chart, horizontal), stacked},
      [horizontal ? 'x' : 'y']: {...axisOptions(chart.y), stacked},
    };
    return {config: {type: 'bar', data: {labels: chart.categories, datasets: barDatasets(chart)}, options,
      plugins: [barLabels(horizontal, stacked, chart.y)]},
    rows: horizontal ? chart.categories.length * (stacked ? 1 : Math.max(1, chart.series.length * 0.7)) : 0};
  }

  // ---- waterfalls: what is left after each change, and what the change took off or added

  function waterfallSteps(chart) {
    const points = chart.series.length > 0 ? chart.series[0].points : [];
    const values = chart.categories.map((_, i) => (points[i] ? shown(points[i].y, chart.y) : null));
    let before = null;
    return values.map((value, i) => {
      const step = {value, before, label: points[i] ? points[i].label : ''};
      if (value !== null) before = value;
      return step;
    });
  }

  function describeWaterfall(chart, steps) {
    const unit = chart.y.unit;
    const start = steps.find((step) => step.value !== null);
    return (items) => {
      const step = steps[items[0].dataIndex];
      const lines = [];
      if (step.value !== null) lines.push({name: axisTitle({title: chart.y.title, unit: ''}) || 'Value', amount: withUnit(step.value, unit)});
      if (step.value !== null && step.before !== null) {
        const change = step.value - step.before;
        lines.push({name: 'Change', amount: `${signed(change, withUnit(change, unit))} (${percent(100 * change / step.before)})`,
          colour: colour(change > 0 ? 'bad' : 'good')});
        if (step.value > 0) lines.push({name: 'First over this', amount: `${numberText(start.value / step.value)}\u00a0\u00d7`});
      }
      if (step.label) lines.push({name: step.label, amount: ''});
      return {title: chart.categories[items[0].dataIndex], lines};
    };
  }

  function waterfallLabels(steps, horizontal) {
    return {
      id: 'waterfallLabels',
      afterDatasetsDraw(plot) {
        const pen = plot.ctx;
        const scale = plot.scales[horizontal ? 'x' : 'y'];
        const zero = scale.getPixelForValue(scale.min);
        steps.forEach((step, i) => {
          if (step.value === null) return;
          const bar = plot.getDatasetMeta(0).data[i];
          const at = horizontal ? bar.y : bar.x;
          const end = scale.getPixelForValue(step.value);
          const top = step.before === null ? end : scale.getPixelForValue(Math.max(step.value, step.before));
          const change = step.before === null || step.before === 0 ? '' : percent(100 * (step.value / step.before - 1));
          const changeColour = colour(step.value > step.before ? 'bad' : 'good');
          const text = shortText(step.value);
          if (horizontal) {
            barText(pen, text, top + 5, at, colour('ink'), 'left', 'middle', true);
            barText(pen, change, top + 5 + pen.measureText(`${text}  `).width, at, changeColour, 'left', 'middle');
            return;
          }
          const inBar = zero - end > 22 && step.value <= (step.before ?? step.value);
          const inGhost = !inBar && end - top > 20;
          if (inBar) barText(pen, text, at, end + 6, colour('surface'), 'center', 'top', true);
          else if (inGhost) barText(pen, text, at, end - 5, colour('ink'), 'center', 'bottom', true);
          else barText(pen, text, at, top - 4, colour('ink'), 'center', 'bottom', true);
          barText(pen, change, at, top - (inBar || inGhost ? 4 : 18), changeColour, 'center', 'bottom');
        });
      },
    };
  }

  // From each bar's end to the next bar: where that one begins.
  function waterfallConnectors(steps, horizontal) {
    return {
      id: 'waterfallConnectors',
      beforeDatasetsDraw(plot) {
        const pen = plot.ctx;
        const scale = plot.scales[horizontal ? 'x' : 'y'];
        pen.save();
        pen.strokeStyle = colour('muted');
        pen.setLineDash([3, 3]);
        pen.beginPath();
        for (let i = 1; i < steps.length; ++i) {
          if (steps[i].before === null) continue;
          const level = scale.getPixelForValue(steps[i].before);
          const [from, to] = [plot.getDatasetMeta(0).data[i - 1], plot.getDatasetMeta(0).data[i]];
          pen.moveTo(...(horizontal ? [level, from.y] : [from.x, level]));
          pen.lineTo(...(horizontal ? [level, to.y] : [to.x, level]));
        }
        pen.stroke();
        pen.restore();
      },
    };
  }

  function waterfallDatasets(chart, steps) {
    const last = steps.length - 1;
    const [accent, good, bad] = [seriesColour(0), colour('good'), colour('bad')];
    const rising = (step) => step.before !== null && step.value > step.before;
    const shape = {grouped: false, maxBarThickness: 84, categoryPercentage: 0.82, barPercentage: 0.9, borderRadius: 2};
    return [
      {
        ...shape,
        label: axisTitle(chart.y),
        data: steps.map((step) => (rising(step) ? step.before : step.value)),
        backgroundColor: steps.map((_, i) => (i === 0 ? colour('series-8') : i === last ? accent : faded(accent, 0.72))),
      },
      {
        ...shape,
        label: 'Change',
        data: steps.map((step) => (step.value === null || step.before === null ? null
          : [Math.min(step.value, step.before), Math.max(step.value, step.before)])),
        backgroundColor: steps.map((step) => striped(rising(step) ? bad : good)),
        borderColor: steps.map((step) => (rising(step) ? bad : good)),
        borderWidth: 1,
        borderSkipped: false,
      },
    ];
  }

  function waterfallConfig(chart) {
    const steps = waterfallSteps(chart);
    const horizontal = narrow.matches;
    const options = commonOptions(false, describeWaterfall(chart, steps));
    const category = horizontal ? 'y' : 'x';
    options.indexAxis = category;
    options.interaction = {mode: 'index', intersect: false, axis: category};
    options.layout = {padding: horizontal ? {right: 84} : {top: 30}};
    options.scales = {
      [category]: categoryAxis(chart, horizontal),
      [horizontal ? 'x' : 'y']: {...axisOptions(chart.y), grace: 0},
    };
    return {config: {type: 'bar', data: {labels: chart.categories, datasets: waterfallDatasets(chart, steps)}, options,
      plugins: [waterfallConnectors(steps, horizontal), waterfallLabels(steps, horizontal)]},
    rows: horizontal ? chart.categories.length * 1.5 : 0};
  }

  // ---- lines and points

  const mostPointLabels = 16;

  // Names beside lone points, where no other name stands.
  function pointLabels(chart) {
    const lone = chart.series.filter((series) => !series.line).reduce((sum, series) => sum + series.points.length, 0);
    return {
      id: 'pointLabels',
      afterDatasetsDraw(plot) {
        if (narrow.matches || lone > mostPointLabels) return;
        const taken = [];
        chart.series.forEach((series, index) => {
          if (series.line || !plot.isDatasetVisible(index)) return;
          plot.getDatasetMeta(index).data.forEach((point, i) => {
            const text = plot.data.datasets[index].data[i].label;
            if (!text) return;
            const box = {x: point.x + 8, y: point.y - 6, w: plot.ctx.measureText(text).width, h: 12};
            if (box.x + box.w > plot.chartArea.right) box.x = point.x - 8 - box.w;
            if (taken.some((other) => box.x < other.x + other.w && other.x < box.x + box.w &&
                                      box.y < other.y + other.h && other.y < box.y + box.h)) return;
            taken.push(box);
            barText(plot.ctx, text, box.x, point.y, colour('muted'), 'left', 'middle');
          });
        });
      },
    };
  }

  function lineDatasets(chart) {
    return chart.series.map((series, index) => {
      const rgb = seriesColour(index);
      const points = series.points
        .map((point) => ({x: shown(point.x, chart.x), y: shown(point.y, chart.y), label: point.label}))
        .filter((point) => point.x !== null);
      const many = points.length > 60;
      return {
        label: series.name,
        data: points,
        showLine: series.line,
        borderColor: rgb,
        backgroundColor: series.dashed ? colour('surface') : rgb,
        borderWidth: series.line ? 2 : 1.5,
        borderDash: series.line && series.dashed ? [6, 4] : [],
        pointStyle: pointStyles[index % pointStyles.length],
        pointRadius: series.line ? (many ? 0 : 3) : 5,
        pointHitRadius: 8,
        pointHoverRadius: 6,
      };
    });
  }

  function describePoints(chart) {
    return (items) => {
      const item = items[0];
      const series = chart.series[item.datasetIndex];
      const lines = [
        {name: chart.x.title || 'x', amount: withUnit(item.raw.x, chart.x.unit)},
        {name: chart.y.title || 'y', amount: withUnit(item.raw.y, chart.y.unit)},
      ];
      if (item.raw.label) lines.unshift({name: series.name, amount: '', colour: item.dataset.borderColor, dashed: series.dashed});
      return {title: item.raw.label || series.name, lines};
    };
  }

  // The sizes that were measured, rather than powers of ten between them.
  function measuredTicks(chart) {
    const values = [...new Set(chart.series.flatMap((series) => series.points.map((point) => point.x)))];
    const plain = values.length > 1 && values.length <= 14 && values.every((value) => Number.isInteger(value) && value > 0);
    return plain && chart.x.logarithmic ? values.sort((a, b) => a - b) : undefined;
  }

  function lineConfig(chart) {
    const options = commonOptions(chart.series.length > 1, describePoints(chart));
    options.interaction = {mode: 'nearest', intersect: false, axis: 'xy'};
    options.layout = {padding: {right: 12}};
    options.scales = {
      x: {...axisOptions(chart.x, {ticksAt: measuredTicks(chart)}), beginAtZero: false, grace: 0},
      y: axisOptions(chart.y),
    };
    return {config: {type: 'scatter', data: {datasets: lineDatasets(chart)}, options, plugins: [pointLabels(chart)]}, rows: 0};
  }

  // ---- all of them

  const kinds = {bars: barConfig, stacked_bars: barConfig, horizontal_bars: barConfig, waterfall: waterfallConfig, lines: lineConfig};
  const rowHeight = 30;
  const frameHeight = 90;
  const plots = [];

  function draw(canvas) {
    const chart = data[Number(canvas.dataset.chart)];
    const old = window.Chart.getChart(canvas);
    if (old) old.destroy();
    try {
      const {config, rows} = kinds[chart.kind](chart);
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
  narrow.addEventListener('change', drawAll);
  document.addEventListener('scroll', () => { document.getElementById('stoker-tooltip').hidden = true; }, {passive: true});
  document.documentElement.dataset.plots = String(plots.length);
})();
