// Waterfalls: what is left after each change, and what the change took off or added.
(() => {
  'use strict';
  const {
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
    shown,
    axisOptions,
    categoryAxis,
    commonOptions,
    drawText,
  } = stokerPlots;

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
      if (step.value !== null)
        lines.push({name: axisTitle({title: chart.y.title, unit: ''}) || 'Value', amount: withUnit(step.value, unit)});
      if (step.value !== null && step.before !== null) {
        const change = step.value - step.before;
        const share = step.before === 0 ? '' : ` (${percent((100 * change) / step.before)})`;
        lines.push({
          name: 'Change',
          amount: `${signed(change, withUnit(change, unit))}${share}`,
          colour: colour(change > 0 ? 'bad' : 'good'),
        });
        if (step.value > 0)
          lines.push({name: 'First over this', amount: `${numberText(start.value / step.value)}\u00a0\u00d7`});
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
            drawText(pen, text, top + 5, at, colour('ink'), 'left', 'middle', true);
            drawText(pen, change, top + 5 + pen.measureText(`${text}  `).width, at, changeColour, 'left', 'middle');
            return;
          }
          const inBar = zero - end > 22 && step.value <= (step.before ?? step.value);
          const inGhost = !inBar && end - top > 20;
          if (inBar) drawText(pen, text, at, end + 6, colour('surface'), 'center', 'top', true);
          else if (inGhost) drawText(pen, text, at, end - 5, colour('ink'), 'center', 'bottom', true);
          else drawText(pen, text, at, top - 4, colour('ink'), 'center', 'bottom', true);
          drawText(pen, change, at, top - (inBar || inGhost ? 4 : 18), changeColour, 'center', 'bottom');
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
          pen.moveTo(...(horizontal ? [level, from.y + from.height / 2] : [from.x + from.width / 2, level]));
          pen.lineTo(...(horizontal ? [level, to.y - to.height / 2] : [to.x - to.width / 2, level]));
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
        backgroundColor: steps.map((_, i) =>
          i === 0 ? colour('series-8') : i === last ? accent : faded(accent, 0.72),
        ),
      },
      {
        ...shape,
        label: 'Change',
        data: steps.map((step) =>
          step.value === null || step.before === null
            ? null
            : [Math.min(step.value, step.before), Math.max(step.value, step.before)],
        ),
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
    const largest = Math.max(...steps.map((step) => step.value ?? 0)) || undefined;
    const options = commonOptions(false, describeWaterfall(chart, steps));
    const category = horizontal ? 'y' : 'x';
    options.indexAxis = category;
    options.interaction = {mode: 'index', intersect: false, axis: category};
    options.layout = {padding: horizontal ? {right: 84} : {top: 30}};
    options.scales = {
      [category]: categoryAxis(chart, horizontal),
      [horizontal ? 'x' : 'y']: {...axisOptions(chart.y), grace: 0, max: horizontal ? largest : undefined},
    };
    return {
      config: {
        type: 'bar',
        data: {labels: chart.categories, datasets: waterfallDatasets(chart, steps)},
        options,
        plugins: [waterfallConnectors(steps, horizontal), waterfallLabels(steps, horizontal)],
      },
      rows: horizontal ? chart.categories.length * 1.5 : 0,
    };
  }

  stokerPlots.kinds.waterfall = waterfallConfig;
})();
