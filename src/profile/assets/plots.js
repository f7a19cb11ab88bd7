// What the plots of a report share: colours of the style sheet, words for numbers, the tooltip, axes. Each kind of plot adds
// itself to stokerPlots.kinds as a function from a chart's data to Chart.js's configuration.
const stokerPlots = (() => {
  'use strict';
  const narrow = window.matchMedia('(max-width: 40rem)');
  const seriesColours = 8;

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
  const seriesColour = (index) => colour(`series-${(index % seriesColours) + 1}`);

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
  const withUnit = (value, unit) =>
    unit ? `${numberText(value)}\u00a0${unit === 'x' ? '\u00d7' : unit}` : numberText(value);
  const shortText = (value) =>
    value.toLocaleString('en-US', {
      maximumSignificantDigits: Math.abs(value) >= 100 ? Math.ceil(Math.log10(Math.abs(value) + 1)) : 3,
    });
  const signed = (value, text) => (value > 0 ? `+${text}` : text.replace('-', '\u2212'));
  const percent = (value) => signed(value, `${Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(1)}\u00a0%`);
  const axisTitle = (axis) => (axis.unit ? (axis.title ? `${axis.title} (${axis.unit})` : axis.unit) : axis.title);

  // A series' name with what its point is called, if that says more.
  const named = (name, label) => (label && label !== name ? `${name}: ${label}` : name);

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

  function logTicks(scale, ticksAt) {
    const [low, high] = [Math.log10(scale.min), Math.log10(scale.max)];
    const steps = high - low > 2.2 ? [1] : high - low > 1 ? [1, 3] : [1, 2, 3, 5, 7];
    let values = ticksAt || [];
    for (let power = Math.floor(low); !ticksAt && power <= high; ++power) {
      values = values.concat(steps.map((step) => Number(`${step}e${power}`)));
    }
    scale.ticks = values.filter((value) => value >= scale.min && value <= scale.max).map((value) => ({value}));
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
      ticks: {
        color: muted,
        padding: 6,
        includeBounds: false,
        maxTicksLimit: narrow.matches ? 6 : 9,
        callback: (value) => numberText(value),
      },
      afterBuildTicks: axis.logarithmic ? (scale) => logTicks(scale, ticksAt) : undefined,
    };
  }

  function categoryAxis(chart, horizontal) {
    const width = horizontal
      ? narrow.matches
        ? 16
        : 30
      : Math.max(9, Math.floor((narrow.matches ? 40 : 120) / chart.categories.length));
    return {
      type: 'category',
      labels: chart.categories.map((text) => wrapped(text, width)),
      title: {display: chart.x.title !== '', text: axisTitle(chart.x), color: colour('muted'), font: {size: 12}},
      grid: {display: false, borderColor: colour('rule')},
      border: {color: colour('rule')},
      ticks: {
        color: colour('ink'),
        autoSkip: chart.categories.length > 30,
        maxRotation: 50,
        font: {size: narrow.matches ? 11 : 12},
      },
    };
  }

  function legendOptions(show) {
    return {
      display: show,
      position: 'top',
      align: 'start',
      labels: {color: colour('ink'), usePointStyle: true, boxWidth: 8, boxHeight: 7, padding: 14},
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

  const fontOf = (weight) => `${weight} 11px ${getComputedStyle(document.body).fontFamily}`;

  function textWidth(context, text) {
    context.font = fontOf(400);
    return context.measureText(text).width;
  }

  function drawText(context, text, x, y, fill, align, baseline, bold) {
    context.font = fontOf(bold ? 600 : 400);
    context.fillStyle = fill;
    context.textAlign = align;
    context.textBaseline = baseline;
    context.fillText(text, x, y);
  }

  return {
    kinds: {},
    narrow,
    colour,
    faded,
    seriesColour,
    striped,
    numberText,
    withUnit,
    shortText,
    signed,
    percent,
    axisTitle,
    named,
    shown,
    axisOptions,
    categoryAxis,
    commonOptions,
    drawText,
    textWidth,
  };
})();
