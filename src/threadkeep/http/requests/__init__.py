"""What every request goes through: routing, bodies, decoding, paging, errors, streams."""
