// Lines and points on linear or logarithmic axes.
(() => {
  'use strict';
  const {narrow, colour, seriesColour, withUnit, named, shown, axisOptions, commonOptions, drawText, textWidth} =
    stokerPlots;
  const pointStyles = ['circle', 'rectRot', 'triangle', 'rect', 'crossRot', 'star', 'rectRounded', 'cross'];
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
            if (!text || Number.isNaN(point.y)) return;
            const box = {x: point.x + 8, y: point.y - 6, w: textWidth(plot.ctx, text), h: 12};
            if (box.x + box.w > plot.chartArea.right) box.x = point.x - 8 - box.w;
            if (
              taken.some(
                (other) =>
                  box.x < other.x + other.w &&
                  other.x < box.x + box.w &&
                  box.y < other.y + other.h &&
                  other.y < box.y + box.h,
              )
            )
              return;
            taken.push(box);
            drawText(plot.ctx, text, box.x, point.y, colour('muted'), 'left', 'middle');
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
      const crowded = points.length > 16 && points.every((point) => !point.label);
      const level = series.dashed && points.every((point) => point.y === points[0].y);
      const bare = series.line && (crowded || level);
      return {
        label: series.name,
        data: points,
        showLine: series.line,
        borderColor: rgb,
        backgroundColor: series.dashed ? colour('surface') : rgb,
        borderWidth: series.line ? 2 : 1.5,
        borderDash: series.line && series.dashed ? [6, 4] : [],
        pointStyle: bare ? 'line' : pointStyles[index % pointStyles.length],
        pointRadius: bare ? 0 : series.line ? 3 : 5,
        pointHitRadius: 8,
        pointHoverRadius: 6,
      };
    });
  }

  // The values of all lines at x, where the lines were measured at the same places.
  function sameX(chart, x) {
    return chart.series.flatMap((series, index) => {
      const point = series.line && series.points.find((one) => one.x === x && shown(one.y, chart.y) !== null);
      return point ? [{series, index, point}] : [];
    });
  }

  function describePoints(chart) {
    return (items) => {
      const item = items[0];
      const series = chart.series[item.datasetIndex];
      const mark = {colour: item.dataset.borderColor, dashed: series.dashed};
      const others = series.line ? sameX(chart, item.raw.x) : [];
      if (others.length > 1) {
        const lines = others.map((one) => ({
          name: named(one.series.name, one.point.label),
          amount: withUnit(one.point.y, chart.y.unit),
          colour: seriesColour(one.index),
          dashed: one.series.dashed,
        }));
        return {title: `${chart.x.title || 'x'}: ${withUnit(item.raw.x, chart.x.unit)}`, lines};
      }
      const lines = [
        {name: chart.x.title || 'x', amount: withUnit(item.raw.x, chart.x.unit)},
        {name: chart.y.title || 'y', amount: withUnit(item.raw.y, chart.y.unit)},
      ];
      if (item.raw.label) lines.unshift({name: series.name, amount: '', ...mark});
      return {title: item.raw.label || series.name, lines};
    };
  }

  // The sizes that were measured, rather than powers of ten between them.
  function measuredTicks(chart) {
    const values = [...new Set(chart.series.flatMap((series) => series.points.map((point) => point.x)))];
    const plain =
      values.length > 1 && values.length <= 14 && values.every((value) => Number.isInteger(value) && value > 0);
    return plain && chart.x.logarithmic ? values.sort((a, b) => a - b) : undefined;
  }

  // A logarithmic axis ends a little beyond the data, not at the next power of ten.
  function limits(chart, name) {
    const axis = chart[name];
    const values = chart.series
      .flatMap((series) => series.points.map((point) => shown(point[name], axis)))
      .filter((value) => value !== null);
    return axis.logarithmic && values.length > 0
      ? {min: Math.min(...values) / 1.3, max: Math.max(...values) * 1.3}
      : {};
  }

  function lineConfig(chart) {
    const options = commonOptions(chart.series.length > 1, describePoints(chart));
    options.interaction = {mode: 'nearest', intersect: false, axis: 'xy'};
    options.layout = {padding: {right: 12}};
    options.scales = {
      x: {
        ...axisOptions(chart.x, {ticksAt: measuredTicks(chart)}),
        ...limits(chart, 'x'),
        beginAtZero: false,
        grace: 0,
      },
      y: {...axisOptions(chart.y), ...limits(chart, 'y')},
    };
    return {
      config: {type: 'scatter', data: {datasets: lineDatasets(chart)}, options, plugins: [pointLabels(chart)]},
      rows: 0,
    };
  }

  stokerPlots.kinds.lines = lineConfig;
})();
