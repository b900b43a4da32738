"""A small MCP server that has something to draw: `python shop.py`."""

from typing import Any

from mcp.server import MCPServer

shop = MCPServer("shop")
QUARTERS = ["Q1", "Q2", "Q3", "Q4"]
SOLD = {2025: [118, 132, 127, 150], 2026: [141, 158, 149, 187]}


@shop.tool()
def sales(year: int) -> dict[str, Any]:
    """What was sold in a year and in the one before, by quarter."""
    series = [{"name": str(it), "data": SOLD[it]} for it in (year - 1, year)]
    chart = {"type": "bar", "title": f"Sales in {year}, thousands", "labels": QUARTERS, "series": series}
    return {"total": sum(SOLD[year]), "before": sum(SOLD[year - 1]), "chart_data": chart}


if __name__ == "__main__":
    shop.run()
