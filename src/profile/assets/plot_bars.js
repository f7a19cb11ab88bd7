// Bars: beside each other, stacked, or lying.
(() => {
  'use strict';
  const {
    narrow,
    colour,
    seriesColour,
    striped,
    withUnit,
    shortText,
    axisTitle,
    named,
    shown,
    axisOptions,
    categoryAxis,
    commonOptions,
    drawText,
    textWidth,
  } = stokerPlots;

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
            const needed = textWidth(pen, text) + 6;
            const length = Math.abs(horizontal ? x - base : y - base);
            if (stacked) {
              const roomy = horizontal ? length > needed && height > 13 : length > 14 && width > needed;
              const fill = dataset.striped ? ink : surface;
              if (roomy)
                drawText(
                  pen,
                  text,
                  horizontal ? (x + base) / 2 : x,
                  horizontal ? y : (y + base) / 2,
                  fill,
                  'center',
                  'middle',
                );
            } else if (horizontal && height > 9) {
              drawText(pen, text, x + 5, y, ink, 'left', 'middle');
            } else if (!horizontal && width > needed - 4) {
              drawText(pen, text, x, y - 3, ink, 'center', 'bottom');
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
        skipNull: true,
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
      const lines = items
        .filter((item) => item.raw !== null)
        .map((item) => {
          const series = chart.series[item.datasetIndex];
          const name = series.name || axisTitle(chart.y) || 'Value';
          return {
            name: named(name, series.points[index].label),
            amount: withUnit(item.raw, chart.y.unit),
            colour: item.dataset.borderColor,
            dashed: series.dashed,
          };
        });
      if (stacked && lines.length > 1) {
        lines.push({
          name: 'Together',
          amount: withUnit(
            items.reduce((sum, item) => sum + (item.raw || 0), 0),
            chart.y.unit,
          ),
        });
      }
      return {title: chart.categories[index], lines};
    };
  }

  // Too many or too long names to stand side by side on a phone.
  function isCrowded(chart) {
    const longest = Math.max(0, ...chart.categories.flatMap((name) => name.split(/\s+/)).map((word) => word.length));
    return chart.categories.length > 5 || chart.categories.length * longest > 44;
  }

  // On a logarithmic axis, bars stand on the power of ten below the smallest.
  function floorOf(chart) {
    const values = chart.series
      .flatMap((series) => series.points.map((point) => shown(point.y, chart.y)))
      .filter((value) => value !== null);
    return chart.y.logarithmic && values.length > 0
      ? 10 ** (Math.ceil(Math.log10(Math.min(...values))) - 1)
      : undefined;
  }

  // Shares are drawn on an axis that ends at 100 %, if they come near it.
  function ceilingOf(chart, stacked) {
    const values = chart.series.map((series) => series.points.map((point) => shown(point.y, chart.y) ?? 0));
    const heights = stacked
      ? chart.categories.map((_, i) => values.reduce((sum, row) => sum + (row[i] ?? 0), 0))
      : values.flat();
    const highest = Math.max(0, ...heights);
    return chart.y.unit === '%' && highest > 60 && highest < 100.5 ? 100 : undefined;
  }

  function barConfig(chart) {
    const stacked = chart.kind === 'stacked_bars';
    const horizontal = chart.kind === 'horizontal_bars' || (narrow.matches && isCrowded(chart));
    const options = commonOptions(chart.series.length > 1, describeBars(chart, stacked));
    const category = horizontal ? 'y' : 'x';
    options.indexAxis = category;
    options.interaction = {mode: 'index', intersect: false, axis: category};
    options.layout = {padding: {right: horizontal && !stacked ? 40 : 4, top: horizontal ? 0 : 12}};
    options.scales = {
      [category]: {...categoryAxis(chart, horizontal), stacked},
      [horizontal ? 'x' : 'y']: {...axisOptions(chart.y), stacked, min: floorOf(chart), max: ceilingOf(chart, stacked)},
    };
    return {
      config: {
        type: 'bar',
        data: {labels: chart.categories, datasets: barDatasets(chart)},
        options,
        plugins: [barLabels(horizontal, stacked, chart.y)],
      },
      rows: horizontal ? chart.categories.length * (stacked ? 1 : Math.max(1, chart.series.length * 0.7)) : 0,
    };
  }

  Object.assign(stokerPlots.kinds, {bars: barConfig, stacked_bars: barConfig, horizontal_bars: barConfig});
})();
