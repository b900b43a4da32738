"""What the inside needs from the outside, in domain terms."""
