"""What the inside asks of the outside, in the domain's words."""
