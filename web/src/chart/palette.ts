/** The colours of series, in this order; reports draw with the light ones, too (`http/reports/chart_svg.py`). */
export const COLOURS = {
  light: ["#2f7a63", "#b5651d", "#3b5ba9", "#8a4b86", "#9a8a2a", "#4a8fa8", "#b0484a", "#6b6f3a"],
  dark: ["#7cc4ab", "#e0a267", "#90a8ea", "#cf9bcb", "#d9c865", "#8cc7dc", "#e99a9b", "#b9bd83"],
};
