"""What the hot paths cost, recorded: a factor is noticed on the day it lands."""
